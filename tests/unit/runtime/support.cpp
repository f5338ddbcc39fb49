// SPDX-License-Identifier: Apache-2.0
#include "runtime/support.hpp"

#include <random>

#include "quant/calibrate.hpp"

namespace qtn::test {

Tensor random(const Shape &shape, float low, float high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = uniform(generator);
  return t;
}

void add_conv(GraphBuilder &b, const std::string &name, const std::string &x, const std::string &y, const Shape &weight,
              const Attrs &a) {
  b.constant(name + ".weight", random(weight, -0.5f, 0.5f, static_cast<unsigned>(name.size() * 31 + weight.size())));
  b.constant(name + ".bias", random({weight[0]}, -0.3f, 0.3f, static_cast<unsigned>(weight[0])));
  b.node("Conv", name, {x, name + ".weight", name + ".bias"}, {y}, a);
}

graph::Graph quantized(const graph::Graph &g, const quant::Config &config) {
  quant::PreparedModel prepared = quant::prepare(g, config);
  for (unsigned i = 0; i < 4; ++i) {
    std::vector<Tensor> samples;
    for (const graph::ValueId v : g.inputs) samples.push_back(random(*g.value(v).shape, -1.0f, 1.5f, i));
    std::vector<const Tensor *> pointers;
    for (const Tensor &t : samples) pointers.push_back(&t);
    quant::calibrate(prepared, pointers);
  }
  return quant::convert(prepared, nullptr);
}

quant::Config seven_bit_weights() {
  quant::Config config("onnx");
  const Attrs settings = attrs({{"weight_reduce_range", std::int64_t{1}}});
  config.set("*", &settings);
  return config;
}

graph::Graph any_batch(graph::Graph g) {
  for (const graph::ValueId v : g.inputs) (*g.value(v).shape)[0] = -1;
  return g;
}

void expect_equal(const Tensor &got, const Tensor &want, const std::string &what) {
  if (got.shape() != want.shape())
    fail_test(what, ": shape ", to_string(got.shape()), ", want ", to_string(want.shape()));
  for (std::int64_t i = 0; i < got.count(); ++i)
    if (got.as<float>()[i] != want.as<float>()[i])
      fail_test(what, ": element ", i, " of ", to_string(got.shape()), " is ", got.as<float>()[i], ", want ",
                want.as<float>()[i]);
}

}  // namespace qtn::test
