// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of ranges, in the corners of the rules, against ONNX Runtime's tool, PyTorch's observer and
// the arithmetic of TensorFlow Lite.
#include "golden.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

void choices(void **) {
  std::size_t checked = 0;
  for (const auto &c : golden("quant/choices.json")) {
    const auto &options = c.at("options");
    const bool of_onnx = c.at("numerics") == "onnx", is_signed = c.at("dtype").get<std::string>().starts_with("int");
    const bool wide = c.at("dtype").get<std::string>().ends_with("16");
    ChooseOptions choose;
    choose.numerics = of_onnx ? Numerics::onnx : c.at("numerics") == "tflite" ? Numerics::tflite : Numerics::fbgemm;
    choose.reduce_range = options.value("reduce_range", false);
    choose.narrow_range = options.value("narrow_range", false);
    if (options.contains("quant_min"))
      choose.range =
          IntegerRange{options.at("quant_min").get<std::int64_t>(), options.at("quant_max").get<std::int64_t>()};
    const qdtype dtype = is_signed ? (wide ? QTN_INT16 : QTN_INT8) : (wide ? QTN_UINT16 : QTN_UINT8);
    const double min = number(c.at("min")), max = number(c.at("max"));
    if (c.at("numerics") == "fused") {
      const ScaleZero chosen =
          choose_fused(*choose.range, c.at("symmetric").get<bool>(), static_cast<float>(min), static_cast<float>(max));
      if (chosen.scale != number(c.at("scale")) || chosen.zero_point != c.at("zero").get<std::int64_t>())
        fail_test(c.dump(), ": ", chosen.scale, " and ", chosen.zero_point);
      ++checked;
      continue;
    }
    const QuantizerPtr q =
        choose_quantizer(dtype, c.at("symmetric").get<bool>() ? QTN_PER_TENSOR_SYMMETRIC : QTN_PER_TENSOR_AFFINE, 0,
                         {&min, 1}, {&max, 1}, choose);
    const auto scale = static_cast<float>(q->scales()[0]), wanted = static_cast<float>(number(c.at("scale")));
    if (scale != wanted || q->zero_points()[0] != c.at("zero").get<std::int64_t>())
      fail_test(c.dump(), ": ", scale, " and ", q->zero_points()[0]);
    ++checked;
  }
  assert_true(checked > 150);
}

/// By the sentences of qquantizer_choose: a scale of float8 is amax divided by the largest value, except for the
/// smallest scale that PyTorch's numerics have, and a range that vanishes has the scale 1 elsewhere.
void small_ranges_of_float8(void **) {
  for (const auto &[numerics, small, none] : {std::tuple{Numerics::onnx, 1e-6f / 448, 1.0f},
                                              {Numerics::tflite, 1e-6f / 448, 1.0f},
                                              {Numerics::fbgemm, 0x1p-23f, 0x1p-23f}}) {
    ChooseOptions options;
    options.numerics = numerics;
    const double ends[] = {1e-6, 0};
    for (const double &end : ends) {
      const double low = -end;
      const QuantizerPtr q =
          choose_quantizer(QTN_FLOAT8E4M3FN, QTN_PER_TENSOR_SYMMETRIC, 0, {&low, 1}, {&end, 1}, options);
      assert_float_equal(q->scales()[0], static_cast<double>(end == 0 ? none : small), 0);
    }
  }
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::choices), cmocka_unit_test(qtn::small_ranges_of_float8)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
