// SPDX-License-Identifier: Apache-2.0
#include "quant/golden_network.hpp"

#include "quant/calibrate.hpp"

namespace qtn::test {

void calibrate_on(quant::PreparedModel &p, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  quant::calibrate(p, inputs);
}

Attrs node_attrs(const nlohmann::json &items) {
  Attrs a;
  for (const auto &[key, value] : items.items()) {
    if (value.is_array())
      a.set(key, value.get<std::vector<std::int64_t>>());
    else
      a.set(key, value.get<std::int64_t>());
  }
  return a;
}

Attrs settings_of(const nlohmann::json &items) {
  Attrs a;
  for (const auto &[key, value] : items.items())
    value.is_string() ? a.set(key, value.get<std::string>()) : a.set(key, value.get<std::int64_t>());
  return a;
}

void expect_equal(const std::string &what, const std::vector<double> &got, const std::vector<double> &want) {
  if (got.size() != want.size()) fail_test(what, ": ", got.size(), " values, not ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (static_cast<float>(got[i]) != static_cast<float>(want[i]))
      fail_test(what, "[", i, "] is ", nlohmann::json(got[i]).dump(), ", not ", nlohmann::json(want[i]).dump());
}

quant::PreparedModel golden_network(const nlohmann::json &file, const quant::Config &config) {
  GraphBuilder builder;
  builder.input("x", shape_of(file.at("samples").at(0)));
  for (const auto &[name, tensor] : file.at("constants").items()) builder.constant(name, float_tensor(tensor));
  for (const auto &n : file.at("nodes"))
    builder.node(n.at("op"), n.at("name"), n.at("inputs"), n.at("outputs"), node_attrs(n.at("attrs")));
  quant::PreparedModel p = quant::prepare(builder.build({"y"}), config);
  for (const auto &sample : file.at("samples")) calibrate_on(p, float_tensor(sample));
  return p;
}

}  // namespace qtn::test
