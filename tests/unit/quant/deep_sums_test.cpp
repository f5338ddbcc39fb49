// SPDX-License-Identifier: Apache-2.0
// Layers of which an output sums more products than int32 holds of any weights: scales make theirs small enough.
#include <cmath>

#include "graph/integer.hpp"
#include "runtime/support.hpp"

namespace qtn::test {
namespace {

struct Layer {
  const char *op;
  std::int64_t depth;
  bool even;   ///< all weights are as large as the largest, which leaves sums the least room
  float bias;  ///< 0: none
  bool whole;  ///< one scale for all channels
};

constexpr std::int64_t kChannels = 3;

Tensor weights_of(const Layer &layer, const Shape &shape) {
  Tensor w = random(shape, -0.5f, 0.5f, 3);
  for (std::int64_t i = 0; i < w.count() && layer.even; ++i) w.as<float>()[i] = 0.25f;
  return w;
}

graph::Graph network_of(const Layer &layer, Shape &x) {
  const bool conv = std::string(layer.op) == "Conv";
  const Shape w = conv ? Shape{kChannels, layer.depth / 4, 2, 2} : Shape{layer.depth, kChannels};
  x = conv ? Shape{1, layer.depth / 4, 2, 2} : Shape{1, layer.depth};
  GraphBuilder b;
  b.input("x", x).constant("w", weights_of(layer, w));
  std::vector<std::string> operands{"x", "w"};
  if (layer.bias != 0) {
    Tensor bias(QTN_FLOAT32, {kChannels});
    std::fill_n(bias.as<float>(), kChannels, layer.bias);
    b.constant("b", bias);
    operands.emplace_back("b");
  }
  b.node(layer.op, "deep", operands, {"y"});
  return b.build({"y"});
}

void expect_integers(const Layer &layer) {
  const std::string what = cat(layer.op, " of depth ", layer.depth, layer.even ? ", even" : "", ", bias ", layer.bias);
  quant::Config config("onnx");
  const Attrs whole = attrs({{"weight_scheme", "per_tensor_symmetric"}});
  if (layer.whole) config.set("*", &whole);
  Shape shape;
  const graph::Graph real = network_of(layer, shape), g = quantized(real, config);
  const std::string reason = graph::float_reason(g, node_named(g, "deep"));
  if (!reason.empty()) fail_test(what, ": ", reason);
  // The largest sums: all activations are 255, or 0, which is as far below the zero point.
  for (const float extreme : {1e9f, -1e9f, 0.3f}) {
    Tensor x(QTN_FLOAT32, shape);
    std::fill_n(x.as<float>(), x.count(), extreme);
    const Tensor *inputs[] = {&x};
    const Tensor want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs)[0];
    const QuantizerPtr grid = g.value(node_named(g, "deep").inputs[0]).quantizer;
    const Tensor near = dequantize(quantize(x, grid)), by = real.value(real.nodes[0].inputs[1]).constant;
    const auto columns = static_cast<std::size_t>(graph::output_channel_axis(real.nodes[0]) == 0 ? 1 : kChannels);
    double sum = static_cast<double>(layer.bias), size = std::fabs(sum);
    for (std::size_t i = 0; i < static_cast<std::size_t>(layer.depth); ++i) {
      const double product =
          static_cast<double>(near.as<const float>()[i]) * static_cast<double>(by.as<const float>()[i * columns]);
      sum += product;
      size += std::fabs(product);
    }
    if (!(std::fabs(static_cast<double>(want.as<const float>()[0]) - sum) <= 0.02 * size))
      fail_test(what, ": ", want.as<const float>()[0], " of ", extreme, ", in float ", sum);
    each_isa([&](const std::string &isa) {
      expect_equal(runtime::Session(g, {runtime::Engine::native, 2}).run(inputs)[0], want, cat(what, ", ", isa));
    });
  }
}

void deep_layers_are_integers(void **) {
  for (const char *op : {"Gemm", "MatMul", "Conv"})
    for (const std::int64_t depth : {66000, 300000})
      for (const bool even : {false, true})
        for (const float bias : {0.0f, 3.0f, 20000.0f})
          if (bias == 0 || std::string(op) != "MatMul")
            for (const bool whole : {false, true}) expect_integers({op, depth, even, bias, whole});
}

void deeper_ones_are_not(void **) {
  Shape shape;
  const graph::Graph g = quantized(network_of({"Gemm", graph::kWeightDepth + 1, false, 0, false}, shape));
  assert_string_equal(graph::float_reason(g, node_named(g, "deep")).c_str(), "its operand is not on a grid of 8 bits");
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(deep_layers_are_integers), cmocka_unit_test(deeper_ones_are_not)};
  return cmocka_run_group_tests_name("quant.deep_sums", tests, nullptr, nullptr);
}
