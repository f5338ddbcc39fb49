// SPDX-License-Identifier: Apache-2.0
// Stored types, block scales, and the grids of TensorFlow Lite and NVIDIA against their own tools.
#include <cmath>
#include <cstring>
#include <map>

#include "golden.hpp"

namespace qtn {
namespace {

using namespace qtn::test;
using Json = nlohmann::json;

Json part(const char *name) { return golden("quant/grids.json").at(name); }

qdtype dtype_of(const Json &j) {
  for (int code = 1; code <= QTN_INT2; ++code)
    if (j.get<std::string>() == dtype_name(static_cast<qdtype>(code))) return static_cast<qdtype>(code);
  fail_test("no dtype ", j.dump());
  return QTN_DTYPE_FORCE32;
}

Shape shape_of(const Json &j) { return Shape(j.at("shape").get<Ints>()); }

std::vector<float> floats_of(const Json &j) {
  std::vector<float> values;
  for (const auto &v : j.at("data")) values.push_back(static_cast<float>(number(v)));
  return values;
}

std::vector<double> doubles_of(const Json &j) {
  const std::vector<float> values = floats_of(j);
  return {values.begin(), values.end()};
}

Ints ints_of(const Json &j) { return j.at("data").get<Ints>(); }

Tensor tensor_of(const Json &j) { return floats(shape_of(j), floats_of(j)); }

void same(float got, float want, const std::string &what) {
  if (std::isnan(want) ? !std::isnan(got) : got != want || std::signbit(got) != std::signbit(want))
    fail_test(what, ": ", got, ", not ", want);
}

void expect_ints(const Tensor &q, const Ints &want, const std::string &what) {
  const Ints got = int_values(q.with_quantizer(nullptr), "q");
  for (std::size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i]) fail_test(what, " at ", i, ": ", got[i], ", not ", want[i]);
}

void expect_floats(const Tensor &got, const Json &want, const std::string &what) {
  const std::vector<float> values = floats_of(want);
  assert_int_equal(got.count(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) same(got.as<const float>()[i], values[i], cat(what, " at ", i));
}

void narrow_floats(void **) {
  std::size_t checked = 0;
  for (const Json &c : part("codes")) {
    const qdtype dtype = dtype_of(c.at("dtype"));
    const Ints patterns = ints_of(c.at("patterns")), encoded = ints_of(c.at("encoded"));
    const std::vector<float> decoded = floats_of(c.at("decoded")), values = floats_of(c.at("values"));
    for (std::size_t i = 0; i < patterns.size(); ++i)
      same(decode_float(dtype, static_cast<std::uint16_t>(patterns[i])), decoded[i],
           cat(dtype_name(dtype), " pattern ", patterns[i]));
    for (std::size_t i = 0; i < values.size(); ++i, ++checked) {
      const std::uint16_t got = encode_float(dtype, values[i], false);
      const bool is_nan = std::isnan(decode_float(dtype, static_cast<std::uint16_t>(encoded[i])));
      if (is_nan ? !std::isnan(decode_float(dtype, got)) : got != encoded[i])
        fail_test(dtype_name(dtype), " of ", values[i], ": ", got, ", not ", encoded[i]);
    }
  }
  assert_true(checked > 400);
}

void powers_of_two(void **) {
  for (const Json &c : part("powers")) {
    const std::string name = c.at("rounding");
    const PowerRounding rounding = name == "up"     ? PowerRounding::up
                                   : name == "down" ? PowerRounding::down
                                                    : PowerRounding::nearest;
    const Ints encoded = ints_of(c.at("encoded"));
    const std::vector<float> values = floats_of(c.at("values")), decoded = floats_of(c.at("decoded"));
    assert_true(values.size() > 200);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint8_t code = encode_exponent(values[i], c.at("saturate").get<int>() != 0, rounding);
      if (code != encoded[i]) fail_test(name, " of ", values[i], ": ", int{code}, ", not ", encoded[i]);
      same(decode_float(QTN_FLOAT8E8M0, code), decoded[i], name);
    }
  }
}

void float8_saturates_if_asked_to(void **) {
  same(decode_float(QTN_FLOAT8E4M3FN, encode_float(QTN_FLOAT8E4M3FN, 1e6f, true)), 448, "e4m3fn");
  same(decode_float(QTN_FLOAT8E5M2, encode_float(QTN_FLOAT8E5M2, -INFINITY, true)), -57344, "e5m2");
  assert_true(std::isnan(decode_float(QTN_FLOAT8E4M3FN, encode_float(QTN_FLOAT8E4M3FN, 1e6f, false))));
  assert_true(std::isinf(decode_float(QTN_FLOAT8E5M2, encode_float(QTN_FLOAT8E5M2, 1e6f, false))));
  same(decode_float(QTN_FLOAT8E4M3FNUZ, encode_float(QTN_FLOAT8E4M3FNUZ, 1e6f, true)), 240, "e4m3fnuz");
  same(decode_float(QTN_FLOAT8E5M2FNUZ, encode_float(QTN_FLOAT8E5M2FNUZ, -INFINITY, true)), -57344, "e5m2fnuz");
  assert_true(std::isnan(decode_float(QTN_FLOAT8E4M3FNUZ, encode_float(QTN_FLOAT8E4M3FNUZ, -1e6f, false))));
  assert_true(std::isnan(decode_float(QTN_FLOAT8E5M2FNUZ, encode_float(QTN_FLOAT8E5M2FNUZ, INFINITY, false))));
  same(decode_float(QTN_FLOAT4E2M1, encode_float(QTN_FLOAT4E2M1, -INFINITY, false)), -6, "e2m1");
}

/// Whole bytes at once or element by element, from the first on or from inside a byte.
void large_packed_tensors(void **) {
  for (const qdtype dtype : {QTN_INT4, QTN_UINT4, QTN_INT2, QTN_UINT2}) {
    const Tensor all(dtype, {9001});
    for (std::size_t i = 0; i < all.nbytes(); ++i)
      all.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 151 + i / 256);
    const auto is_signed = plain_dtype(dtype) == QTN_INT8;
    const unsigned bits = dtype_bits(dtype), mask = (1u << bits) - 1;
    for (const std::int64_t first : {0, 1, 4}) {
      const std::vector<std::int64_t> got = int_values(all.slice(0, first, all.count(), 1), "got");
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t bit = (i + static_cast<std::size_t>(first)) * bits;
        const auto code = static_cast<std::int64_t>(all.as<std::uint8_t>()[bit / 8] >> bit % 8 & mask);
        assert_int_equal(got[i], is_signed && code > mask / 2 ? code - mask - 1 : code);
      }
    }
  }
}

void packed_integers(void **) {
  for (const Json &c : part("packed")) {
    const qdtype dtype = dtype_of(c.at("dtype"));
    const Ints values = ints_of(c.at("values")), bytes = ints_of(c.at("bytes"));
    Tensor plain(plain_dtype(dtype), Shape{static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) plain.as<std::int8_t>()[i] = static_cast<std::int8_t>(values[i]);
    const Tensor packed = from_plain(plain, dtype);
    assert_int_equal(packed.nbytes(), bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) assert_int_equal(packed.as<std::uint8_t>()[i], bytes[i]);
    expect_ints(packed, values, dtype_name(dtype));
    // Views begin inside a byte.
    const Tensor view = packed.slice(0, 1, 7, 2);
    expect_ints(view, {values[1], values[3], values[5]}, "a slice");
    expect_ints(view.to_contiguous(), {values[1], values[3], values[5]}, "its copy");
    copy_elements(view, from_plain(plain, dtype).slice(0, 4, 7, 1));
    expect_ints(packed, {values[0], values[4], values[2], values[5], values[4], values[6], values[6]}, "written");
  }
}

void blocks(void **) {
  for (const Json &c : part("blocks")) {
    const qdtype dtype = dtype_of(c.at("dtype"));
    const Tensor x = tensor_of(c.at("x"));
    const auto quantizer = std::make_shared<Quantizer>(dtype, QTN_PER_BLOCK_AFFINE, c.at("axis").get<std::int32_t>(),
                                                       doubles_of(c.at("scale")), ints_of(c.at("zero_point")),
                                                       Numerics::onnx, c.at("block_size").get<std::int64_t>());
    const Tensor q = quantize(x, quantizer);
    const std::string what = cat(dtype_name(dtype), " ", to_string(x.shape()));
    expect_ints(q, ints_of(c.at("q")), what);
    expect_floats(dequantize(q), c.at("dequantized"), what);
  }
}

void float8(void **) {
  for (const Json &c : part("float8")) {
    const qdtype dtype = dtype_of(c.at("dtype"));
    const auto quantizer = std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_SYMMETRIC, 0,
                                                       std::vector{number(c.at("scale"))}, Ints{0}, Numerics::onnx);
    const Tensor q = quantize(tensor_of(c.at("x")), quantizer);
    const Ints want = ints_of(c.at("q"));
    for (std::size_t i = 0; i < want.size(); ++i)
      assert_int_equal(is_packed(dtype) ? q.packed().load(static_cast<std::int64_t>(i)) : q.as<std::uint8_t>()[i],
                       want[i]);
    expect_floats(dequantize(q), c.at("dequantized"), dtype_name(dtype));
    // Views of a packed type begin inside a byte.
    expect_floats(dequantize(q.slice(0, 1, q.count(), 2).clone()), c.at("odd"), "a slice");
  }
}

void tflite(void **) {
  for (const Json &c : part("tflite")) {
    const auto quantizer = std::make_shared<Quantizer>(dtype_of(c.at("dtype")), QTN_PER_TENSOR_AFFINE, 0,
                                                       std::vector{number(c.at("scale"))},
                                                       Ints{c.at("zero_point").get<std::int64_t>()}, Numerics::tflite);
    const Tensor q = quantize(tensor_of(c.at("x")), quantizer);
    expect_ints(q, ints_of(c.at("q")), c.at("dtype").get<std::string>());
    expect_floats(dequantize(q), c.at("dequantized"), c.at("dtype").get<std::string>());
  }
}

void nvidia(void **) {
  for (const Json &c : part("nvidia")) {
    const bool is_unsigned = c.at("unsigned").get<int>() != 0, four = c.at("bits").get<int>() == 4;
    const qdtype dtype = four ? (is_unsigned ? QTN_UINT4 : QTN_INT4) : (is_unsigned ? QTN_UINT8 : QTN_INT8);
    const double amax = number(c.at("amax")), min = is_unsigned ? 0 : -amax;
    ChooseOptions options;
    options.numerics = Numerics::nvidia;
    const QuantizerPtr quantizer =
        choose_quantizer(dtype, QTN_PER_TENSOR_SYMMETRIC, 0, std::span(&min, 1), std::span(&amax, 1), options);
    const Tensor q = quantize(tensor_of(c.at("x")), quantizer);
    const std::string what = cat(dtype_name(dtype), " amax ", amax);
    expect_ints(q, ints_of(c.at("q")), what);
    expect_floats(dequantize(q), c.at("fake"), what);
  }
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::narrow_floats),
                              cmocka_unit_test(qtn::powers_of_two),
                              cmocka_unit_test(qtn::float8_saturates_if_asked_to),
                              cmocka_unit_test(qtn::large_packed_tensors),
                              cmocka_unit_test(qtn::packed_integers),
                              cmocka_unit_test(qtn::blocks),
                              cmocka_unit_test(qtn::float8),
                              cmocka_unit_test(qtn::tflite),
                              cmocka_unit_test(qtn::nvidia)};
  return cmocka_run_group_tests_name("core/grids", tests, nullptr, nullptr);
}
