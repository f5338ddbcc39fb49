// SPDX-License-Identifier: Apache-2.0
// Networks of float64 and float16 compared with PyTorch, ONNX's reference evaluator and ONNX Runtime: what they compute in,
// what goes in and comes out, and their way to integers and back from a file.
#include <cmath>

#include "onnx/onnx.hpp"
#include "ops/support.hpp"
#include "quant/calibrate.hpp"
#include "quant/prepare.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

const std::string kFolder = QTN_GOLDEN_DIR "/doubles/";

std::vector<Tensor> tensors_of(const nlohmann::json &list) {
  std::vector<Tensor> tensors;
  for (const auto &t : list) tensors.push_back(tensor_of(t));
  return tensors;
}

std::vector<const Tensor *> pointers_to(const std::vector<Tensor> &tensors) {
  std::vector<const Tensor *> pointers;
  for (const Tensor &t : tensors) pointers.push_back(&t);
  return pointers;
}

std::vector<double> as_doubles(const Tensor &t) {
  const Tensor plain = to_plain(t);
  std::vector<double> values;
  dispatch(plain.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < plain.count(); ++i) values.push_back(static_cast<double>(plain.as<const T>()[i]));
  });
  return values;
}

double largest(const Tensor &t) {
  double most = 0;
  for (const double v : as_doubles(t)) most = std::max(most, std::abs(v));
  return most;
}

void expect_near(const Tensor &got, const Tensor &want, double tolerance, const std::string &what) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    fail_test(what, ": ", dtype_name(got.dtype()), " ", to_string(got.shape()), ", want ", dtype_name(want.dtype()),
              " ", to_string(want.shape()));
  const std::vector<double> g = as_doubles(got), w = as_doubles(want);
  for (std::size_t i = 0; i < w.size(); ++i)
    if (!(std::abs(g[i] - w[i]) <= tolerance * largest(want)))
      fail_test(what, ": element ", i, " is ", g[i], ", want ", w[i]);
}

void outputs_of_other_tools(void **) {
  const nlohmann::json file = read_json(kFolder + "doubles.json");
  assert_int_equal(file.at("cases").size(), 14);
  for (const auto &c : file.at("cases")) {
    const std::string name = c.at("name");
    const std::vector<Tensor> inputs = tensors_of(c.at("inputs")), want = tensors_of(c.at("outputs"));
    const graph::Graph g = onnx::load(kFolder + name + ".onnx");
    // What float64 would lose in float32 stays where every node takes float64.
    const double tolerance = name == "kept" ? 1e-15
                             : name.starts_with("halve") || name.ends_with("halves") || name.starts_with("grids")
                                 ? 2e-3
                                 : 2e-6;
    for (const runtime::Engine engine : {runtime::Engine::reference, runtime::Engine::native}) {
      const std::vector<Tensor> got = runtime::Session(g, {engine, 1}).run(pointers_to(inputs));
      for (std::size_t i = 0; i < want.size(); ++i) expect_near(got[i], want[i], tolerance, cat(name, ", output ", i));
    }
    // Written, it is the same network.
    const std::string bytes = onnx::serialize(g, {});
    const graph::Graph again = onnx::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "");
    const std::vector<Tensor> got = runtime::Session(again, {}).run(pointers_to(inputs));
    for (std::size_t i = 0; i < want.size(); ++i) expect_near(got[i], want[i], tolerance, cat(name, " written, ", i));
  }
}

void in_integers(void **) {
  const nlohmann::json file = read_json(kFolder + "doubles.json");
  const auto &c = file.at("cases")[0];
  const std::vector<Tensor> inputs = tensors_of(c.at("inputs")), want = tensors_of(c.at("outputs"));
  quant::PreparedModel prepared = quant::prepare(onnx::load(kFolder + "pictures.onnx"), quant::Config("onnx"));
  quant::calibrate(prepared, pointers_to(inputs));
  const graph::Graph converted = quant::convert(prepared, nullptr);
  const runtime::Session session(converted, {});
  const std::vector<Tensor> got = session.run(pointers_to(inputs));
  const std::vector<Tensor> reference =
      runtime::Session(converted, {runtime::Engine::reference, 1}).run(pointers_to(inputs));
  const std::string bytes = onnx::serialize(converted, {});
  const graph::Graph loaded = onnx::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "");
  const std::vector<Tensor> again = runtime::Session(loaded, {}).run(pointers_to(inputs));
  for (std::size_t i = 0; i < want.size(); ++i) {
    expect_near(got[i], want[i], 0.05, "in integers");
    expect_near(got[i], reference[i], 0, "the reference engine");
    expect_near(again[i], got[i], 0, "written");
  }
  std::vector<std::string> floats;
  const std::vector<const Tensor *> pointers = pointers_to(inputs);
  const auto profile = nlohmann::json::parse(session.profile(pointers));
  for (const auto &node : profile.at("nodes"))
    if (node.at("dtype") != "int8" && node.at("op") != "Copy") floats.push_back(node.at("op"));
  assert_true(floats == (std::vector<std::string>{"Cast", "AveragePool", "PRelu", "Cast", "Cast"}));
}

void casts_of_weights_are_weights(void **) {
  const graph::Graph g = onnx::load(kFolder + "halved_weights.onnx");
  const Tensor x(QTN_FLOAT32, {3, 6});
  std::fill_n(x.as<float>(), x.count(), 1.0f);
  const Tensor *inputs[] = {&x};
  quant::PreparedModel prepared = quant::prepare(g, quant::Config("onnx"));
  quant::calibrate(prepared, inputs);
  const runtime::Session session(quant::convert(prepared, nullptr), {});
  const auto profile = nlohmann::json::parse(session.profile(inputs));
  assert_true(std::ranges::any_of(profile.at("nodes"), [](const nlohmann::json &node) {
    return node.at("dtype") == "int8" && node.at("op") == "MatMul";
  }));
}

void expect_no_halves(const graph::Graph &g) {
  for (const graph::Value &value : g.values) {
    const qdtype dtype = value.is_constant() ? value.constant.dtype() : value.dtype.value_or(QTN_FLOAT32);
    if (dtype == QTN_FLOAT16) fail_test("\"", value.name, "\" is float16");
  }
  for (const graph::Node &node : g.nodes)
    for (const auto &body : node.bodies) expect_no_halves(*body);
}

/// What a file of such a network says of types fits together, too.
void bodies_compute_as_the_network_around_them(void **) {
  for (const char *name : {"halves_in_branches.onnx", "grids_in_bodies.onnx"}) {
    const graph::Graph g = onnx::load(kFolder + name);
    std::size_t bodies = 0;
    for (const graph::Node &node : g.nodes)
      for (const auto &body : node.bodies) ++bodies, expect_no_halves(*body);
    assert_int_equal(bodies, 3);
  }
}

void bounds_have_the_type_of_what_they_clip(void **) {
  const graph::Graph g = onnx::load(kFolder + "bounds_of_halves.onnx");
  std::size_t floats = 0;
  for (const graph::Node &node : g.nodes)
    for (const graph::ValueId v : node.inputs)
      if (v != graph::kNoValue && g.value(v).is_constant() && g.value(v).constant.dtype() != QTN_INT64) {
        ++floats;
        assert_int_equal(g.value(v).constant.dtype(), QTN_FLOAT16);
      }
  assert_int_equal(floats, 3);
}

void what_goes_in(void **) {
  const nlohmann::json file = read_json(kFolder + "doubles.json");
  const graph::Graph g = onnx::load(kFolder + "pictures.onnx");
  const Tensor x(QTN_FLOAT32, {2, 3, 8, 8});
  std::fill_n(x.as<float>(), x.count(), 1.0f);
  const Tensor *inputs[] = {&x};
  expect_error(QTN_EDTYPE, "session: input \"x\" is float64, not float32",
               [&] { runtime::Session(g, {}).run(inputs); });
  quant::PreparedModel prepared = quant::prepare(g, quant::Config("onnx"));
  expect_error(QTN_EDTYPE, "calibrate: input \"x\" is float64, not float32",
               [&] { quant::calibrate(prepared, inputs); });
  const Tensor wide(QTN_FLOAT64, {2, 3, 8, 8});
  std::fill_n(wide.as<double>(), wide.count(), 1e300);  // more than float32 holds
  inputs[0] = &wide;
  expect_error(QTN_EINVAL, "calibrate: tensor \"x_float32\"", [&] { quant::calibrate(prepared, inputs); });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(outputs_of_other_tools),
      cmocka_unit_test(in_integers),
      cmocka_unit_test(casts_of_weights_are_weights),
      cmocka_unit_test(bodies_compute_as_the_network_around_them),
      cmocka_unit_test(bounds_have_the_type_of_what_they_clip),
      cmocka_unit_test(what_goes_in),
  };
  return cmocka_run_group_tests_name("runtime.doubles", tests, nullptr, nullptr);
}
