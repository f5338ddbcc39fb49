// SPDX-License-Identifier: Apache-2.0
// Single layers beside the operators of the same meaning, on every mix of operands.
#include "quant/quantized_layer.hpp"

#include <thread>

#include "../sums.hpp"
#include "check.hpp"
#include "ops/eager.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

using quant::Config;
using quant::QuantizedLayer;

QuantizerPtr grid(qdtype dtype, double scale, std::int64_t zero) {
  return std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector{scale}, std::vector{zero},
                                     Numerics::fbgemm);
}

const QuantizerPtr kNone;
const QuantizerPtr kGrids[] = {kNone, grid(QTN_UINT8, 0.03, 100), grid(QTN_INT8, 0.05, -20)};

/// What the operator gives for the operands of a layer.
Tensor by_operator(const QuantizedLayer &layer, const Tensor &x, const QuantizedLayer::Parts &parts) {
  const Tensor *bias = layer.bias() ? &*layer.bias() : nullptr;
  if (parts.kind == "linear") return ops::linear(x, layer.weight(), bias, parts.out);
  if (parts.kind == "conv2d") return ops::conv2d(x, layer.weight(), bias, parts.out, parts.attrs);
  std::vector<const Tensor *> operands = {&x, &layer.weight()};
  if (bias) operands.push_back(bias);
  return ops::run_eager("Conv", operands, parts.attrs, parts.out);
}

void expect_operator(const QuantizedLayer::Parts &parts, const Tensor &x) {
  const QuantizedLayer layer(parts);
  for (const QuantizerPtr &q : kGrids) {
    const Tensor operand = q ? quantize(x, q) : x;
    const Tensor seen = !q && parts.x ? quantize(x, parts.x) : operand;
    const Tensor want = by_operator(layer, seen, parts);
    for (int run = 0; run < 2; ++run) {
      const Tensor got = layer.run(operand);
      const bool products_of_floats = !seen.quantized() && !want.quantized();
      if (products_of_floats ? !equal_but_for_sums(got, want) : !equal(got, want))
        fail_test(parts.kind, " differs from its operator, x ", q ? dtype_name(q->dtype()) : "float", ", result ",
                  parts.out ? dtype_name(parts.out->dtype()) : "float");
    }
  }
}

void layers_have_the_bits_of_operators(void **) {
  for (const char *recipe : {"onnx", "fbgemm", "qnnpack", "onednn"}) {
    const Config config(recipe);
    for (const QuantizerPtr &x : kGrids)
      for (const QuantizerPtr &out : kGrids)
        for (const bool biased : {false, true}) {
          QuantizedLayer::Parts parts{"linear", GraphBuilder::ramp({7, 12})};
          if (biased) parts.bias = GraphBuilder::ramp({7});
          parts.config = &config;
          parts.x = x;
          parts.out = out;
          expect_operator(parts, GraphBuilder::ramp({3, 12}));
          expect_operator(parts, GraphBuilder::ramp({2, 5, 12}));
          parts.weight = GraphBuilder::ramp({7, 2, 3});
          parts.kind = "conv1d";
          expect_operator(parts, GraphBuilder::ramp({2, 2, 9}));
          parts.weight = GraphBuilder::ramp({7, 2, 3, 3});
          parts.kind = "conv2d";
          parts.attrs.set("pads", std::vector<std::int64_t>{1, 0, 1, 2});
          parts.attrs.set("strides", std::vector<std::int64_t>{2, 1});
          expect_operator(parts, GraphBuilder::ramp({2, 2, 6, 5}));
        }
  }
}

void weights_are_kept(void **) {
  const Config config("onnx");
  Config four("onnx");
  Attrs bits;
  bits.set("weight_bits", std::int64_t{4});
  four.set("op:Gemm", &bits);
  const Tensor w = GraphBuilder::ramp({4, 6});
  QuantizedLayer::Parts parts{"linear", w};
  parts.config = &four;
  const QuantizedLayer narrow(parts);
  assert_true(narrow.weight().dtype() == QTN_INT4);
  // What is quantized already is taken as it is, whatever the type.
  for (const QuantizerPtr &q : {grid(QTN_UINT8, 0.02, 128), grid(QTN_INT8, 0.02, 3), narrow.weight().quantizer()}) {
    const QuantizedLayer layer({"linear", q->dtype() == QTN_INT4 ? narrow.weight() : quantize(w, q)});
    assert_true(equal(layer.weight(), q->dtype() == QTN_INT4 ? narrow.weight() : quantize(w, q)));
    const Tensor x = quantize(GraphBuilder::ramp({2, 6}), kGrids[1]);
    assert_true(equal(layer.run(x), ops::linear(x, layer.weight(), nullptr, nullptr)));
  }
}

void a_configuration_may_refuse(void **) {
  Config floats("onnx"), blocks("onnx");
  floats.set("op:Gemm", nullptr);
  Attrs settings;
  settings.set("weight_scheme", std::string("per_block_symmetric"));
  settings.set("block_size", std::int64_t{2});
  blocks.set("*", &settings);
  for (const auto &[config, message] :
       {std::pair{&floats, "linear: config leaves Gemm in float"},
        {&blocks, "linear: config wants weights in blocks, not per tensor or channel"}}) {
    QuantizedLayer::Parts parts{"linear", GraphBuilder::ramp({4, 6})};
    parts.config = config;
    expect_error(QTN_EUNSUPPORTED, message, [&] { QuantizedLayer layer(parts); });
  }
}

void every_grid_has_its_session_and_old_ones_go(void **) {
  const Config config("fbgemm");
  QuantizedLayer::Parts parts{"linear", GraphBuilder::ramp({5, 8})};
  parts.config = &config;
  const QuantizedLayer layer(parts);
  const Tensor x = GraphBuilder::ramp({2, 8});
  for (int round = 0; round < 2; ++round)
    for (int i = 1; i <= 20; ++i) {
      const Tensor q = quantize(x, grid(QTN_UINT8, 0.01 * i, 5 * i));
      assert_true(equal(layer.run(q), ops::linear(q, layer.weight(), nullptr, nullptr)));
    }
}

void many_threads_run_one(void **) {
  const Config config("onnx");
  QuantizedLayer::Parts parts{"conv2d", GraphBuilder::ramp({6, 3, 3, 3})};
  parts.config = &config;
  parts.out = kGrids[1];
  const QuantizedLayer layer(parts);
  std::vector<Tensor> inputs, want;
  for (int i = 1; i <= 12; ++i) {
    inputs.push_back(quantize(GraphBuilder::ramp({1, 3, 6, 4 + i % 3}), grid(QTN_UINT8, 0.01 * i, 5 * i)));
    want.push_back(ops::conv2d(inputs.back(), layer.weight(), nullptr, parts.out, {}));
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 120; ++i) {
        const std::size_t at = (i * 7 + t) % inputs.size();
        wrong[t] += equal(layer.run(inputs[at]), want[at]) ? 0 : 1;
      }
    });
  for (std::thread &thread : threads) thread.join();
  for (const int count : wrong) assert_true(count == 0);
}

void empty_inputs_give_empty_results(void **) {
  const Config config("onnx");
  QuantizedLayer::Parts parts{"linear", GraphBuilder::ramp({5, 8})};
  parts.config = &config;
  for (const QuantizerPtr &out : kGrids) {
    parts.out = out;
    const QuantizedLayer layer(parts);
    for (const QuantizerPtr &q : kGrids) {
      const Tensor none(QTN_FLOAT32, {0, 8});
      assert_true(layer.run(q ? quantize(none, q) : none).shape() == Shape({0, 5}));
    }
  }
  QuantizedLayer::Parts rows{"embedding", GraphBuilder::ramp({5, 8})};
  rows.config = &config;
  assert_true(QuantizedLayer(rows).run(Tensor(QTN_INT64, {0, 3})).shape() == Shape({0, 3, 8}));
  rows.kind = "embedding_bag";
  const Tensor sums = QuantizedLayer(rows).run(Tensor(QTN_INT64, {2, 0}));
  assert_true(sums.shape() == Shape({2, 8}));
  for (std::int64_t i = 0; i < sums.count(); ++i) assert_true(sums.as<const float>()[i] == 0);
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::layers_have_the_bits_of_operators),
      cmocka_unit_test(qtn::test::weights_are_kept),
      cmocka_unit_test(qtn::test::a_configuration_may_refuse),
      cmocka_unit_test(qtn::test::every_grid_has_its_session_and_old_ones_go),
      cmocka_unit_test(qtn::test::many_threads_run_one),
      cmocka_unit_test(qtn::test::empty_inputs_give_empty_results),
  };
  return cmocka_run_group_tests_name("quant/quantized_layer", tests, nullptr, nullptr);
}
