// SPDX-License-Identifier: Apache-2.0
// What the default does for networks of which 8 bits leave nothing: the fewest layers stay in float.
#include "graph_builder.hpp"
#include "networks.hpp"
#include "quant/quantize.hpp"
#include "quant/search/accuracy.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

constexpr std::int64_t kFrequencies = 8, kTaps = 16, kLength = 256;

/// Sounds between soft and loud.
Samples sounds(std::size_t count, unsigned seed) {
  return {count, [seed](std::size_t i) {
            Tensor x = normal({1, 1, kLength}, seed + static_cast<unsigned>(i));
            for (std::int64_t t = 0; t < kLength; ++t)
              x.as<float>()[t] *= std::exp(-6.0f * static_cast<float>(t) / kLength) *
                                  std::sin(0.4f * static_cast<float>(t * (1 + static_cast<std::int64_t>(i) % 3)));
            return std::vector<Tensor>{x};
          }};
}

/// Logarithms of the power of frequencies, which are of use where it is small, too, and a layer that reads them.
graph::Graph hearing() {
  Tensor basis(QTN_FLOAT32, {2 * kFrequencies, 1, kTaps});
  for (std::int64_t f = 0; f < kFrequencies; ++f)
    for (std::int64_t t = 0; t < kTaps; ++t) {
      const float angle = 6.2831853f * static_cast<float>((f + 1) * t) / kTaps;
      basis.as<float>()[f * kTaps + t] = std::cos(angle);
      basis.as<float>()[(kFrequencies + f) * kTaps + t] = std::sin(angle);
    }
  GraphBuilder b;
  b.input("x", {1, 1, kLength}).constant("basis", basis).constant("small", Tensor::scalar(1e-6f));
  b.constant("w", normal({5, kFrequencies, 3}, 5, 0.3f)).constant("v", normal({3, 5, 3}, 6, 0.3f));
  b.node("Conv", "fourier", {"x", "basis"}, {"both"}, attrs({{"strides", Ints{8}}}));
  b.node("Split", "split", {"both"}, {"real", "imaginary"}, attrs({{"axis", std::int64_t{1}}, {"num_outputs", std::int64_t{2}}}));
  b.node("Mul", "real_power", {"real", "real"}, {"r"}).node("Mul", "imaginary_power", {"imaginary", "imaginary"}, {"i"});
  b.node("Add", "power", {"r", "i"}, {"p"}).node("Add", "floor", {"p", "small"}, {"q"}).node("Log", "log", {"q"}, {"l"});
  b.node("Conv", "first", {"l", "w"}, {"h"}).node("Relu", "relu", {"h"}, {"g"}).node("Conv", "second", {"g", "v"}, {"y"});
  return b.build({"y"});
}

double unseen_db(const graph::Graph &g, const graph::Graph &quantized) {
  const Samples unseen = sounds(20, 900), none = sounds(0, 0);
  return Judge(g, unseen, none).on(quantized).held_back.sqnr_db();
}

void stays_in_float(void **) {
  const graph::Graph g = hearing();
  const Samples samples = sounds(8, 1);
  const Quantized useful = quantize(g, Config("onnx"), samples, nullptr, {});
  Attrs tries_nothing;
  tries_nothing.set("plain", std::int64_t{1});
  const Quantized useless = quantize(g, Config("onnx"), samples, &tries_nothing, {});
  assert_true(unseen_db(g, useless.graph) < 12);
  assert_true(unseen_db(g, useful.graph) >= 20);
  assert_true(useless.report.fallen.empty());
  assert_true(!useful.report.fallen.empty());
  for (const FallenLayer &layer : useful.report.fallen) assert_string_not_equal(layer.node.c_str(), "second");
}

/// Most samples are silent, of which 8 bits lose nothing: those that are not decide.
void rare_sounds(void **) {
  const graph::Graph g = hearing();
  const Samples loud = sounds(24, 1);
  const auto read = [&](std::size_t i) {
    std::vector<Tensor> inputs = loud.read(i);
    if (i % 6 != 4) std::fill_n(inputs[0].as<float>(), kLength, 0.0f);
    return inputs;
  };
  const Quantized useful = quantize(g, Config("onnx"), {loud.count, read}, nullptr, {});
  assert_true(!useful.report.fallen.empty());
  assert_true(unseen_db(g, useful.graph) >= 20);
}

/// Who says how many bits there are to be gets them.
void bits_that_were_asked_for(void **) {
  const graph::Graph g = hearing();
  Config config("onnx");
  Attrs few;
  few.set("weight_bits", std::int64_t{4});
  config.set("*", &few);
  assert_true(quantize(g, config, sounds(8, 1), nullptr, {}).report.fallen.empty());
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {cmocka_unit_test(stays_in_float), cmocka_unit_test(rare_sounds),
                              cmocka_unit_test(bits_that_were_asked_for)};
  return cmocka_run_group_tests_name("useful", tests, nullptr, nullptr);
}
