// SPDX-License-Identifier: Apache-2.0
// Fake quantization and its gradients against PyTorch's, and against quantize and dequantize of this library.
#include "train/fake_quantize.hpp"

#include <cmath>
#include <random>

#include "base/parallel.hpp"
#include "golden.hpp"

namespace qtn {
namespace {

using namespace qtn::test;
using namespace qtn::train;
using Json = nlohmann::json;

Json part(const char *name) { return golden("training/fake_quantize.json").at(name); }

std::vector<float> floats_of(const Json &j) {
  std::vector<float> values;
  for (const auto &v : j.at("data")) values.push_back(static_cast<float>(number(v)));
  return values;
}

Tensor tensor_of(const Json &j) { return floats(Shape(j.at("shape").get<Ints>()), floats_of(j)); }

/// A case of the golden file: its tensors and grids.
struct Case {
  explicit Case(const Json &c)
      : name(c.at("name")),
        scales(floats_of(c.at("scale"))),
        zero_points(c.at("zero_point").at("data").get<std::vector<std::int32_t>>()),
        x(tensor_of(c.at("x"))),
        dy(tensor_of(c.at("dy"))),
        y(tensor_of(c.at("y"))),
        dx(tensor_of(c.at("dx"))),
        grids{scales, zero_points, c.at("quant_min"), c.at("quant_max"), Rounding::reciprocal} {
    if (!c.at("axis").is_null()) grids.axis = c.at("axis");
  }

  std::string name;
  std::vector<float> scales;
  std::vector<std::int32_t> zero_points;
  Tensor x, dy, y, dx;
  Grids grids;
};

void expect_equal(const Tensor &got, const Tensor &want, const std::string &what) {
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const float g = got.as<const float>()[i], w = want.as<const float>()[i];
    if (g != w) fail_test(what, " at ", i, ": ", g, ", not ", w);
  }
}

void expect_bits(const Tensor &got, const Tensor &want, const std::string &what) {
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const float g = got.as<const float>()[i], w = want.as<const float>()[i];
    if (!(g == w && std::signbit(g) == std::signbit(w)) && !(std::isnan(g) && std::isnan(w)))
      fail_test(what, " at ", i, ": ", g, ", not ", w);
  }
}

Tensor like(const Tensor &x) { return Tensor(QTN_FLOAT32, x.shape()); }

void pytorch(void **) {
  for (const Json &j : part("fixed")) {
    const Case c(j);
    const Tensor y = like(c.x), dx = like(c.x);
    fake_quantize(c.x, c.grids, y);
    expect_equal(y, c.y, c.name + " y");
    fake_quantize_backward(c.x, c.grids, c.dy, dx);
    expect_equal(dx, c.dx, c.name + " dx");
    fake_quantize_backward(c.x, c.grids, c.dy, c.dy);
    expect_equal(c.dy, c.dx, c.name + " dx in place");
  }
}

/// PyTorch rounds each term of a scale's gradient at the size of x / scale, so as float32 holds it, and adds in
/// float32.
void pytorch_learned(void **) {
  Scratch scratch;
  for (const Json &j : part("learned")) {
    const Case c(j);
    const Tensor y = like(c.x), dx = like(c.x);
    fake_quantize(c.x, c.grids, y);
    expect_equal(y, c.y, c.name + " y");
    std::vector<float> d_scales(c.scales.size()), d_zero_points(c.scales.size());
    learned_backward(c.x, c.grids, c.dy, dx, d_scales, d_zero_points, scratch);
    expect_equal(dx, c.dx, c.name + " dx");
    const float factor = j.at("grad_factor");
    const std::vector<float> want = floats_of(j.at("d_scale")), want_zero = floats_of(j.at("d_zero_point"));
    float size = 0;
    for (const float dy : float_values(c.dy, "dy")) size += std::abs(dy) * factor;
    const float eps = std::exp2(-23.0f), steps = static_cast<float>(c.grids.hi - c.grids.lo);
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!(std::abs(d_scales[i] * factor - want[i]) <= eps * steps * size))
        fail_test(c.name, " d_scale ", i, ": ", d_scales[i] * factor, ", not ", want[i]);
      if (!(std::abs(d_zero_points[i] * factor - want_zero[i]) <= eps * 8 * size * c.scales[i]))
        fail_test(c.name, " d_zero_point ", i, ": ", d_zero_points[i] * factor, ", not ", want_zero[i]);
    }
  }
}

void clip(void **) {
  Scratch scratch;
  for (const Json &c : part("clip")) {
    const Tensor x = tensor_of(c.at("x")), dy = tensor_of(c.at("dy")), dx = like(x);
    const ClipGradient d = clip_backward(x, c.at("lo"), c.at("hi"), dy, dx, scratch);
    expect_equal(dx, tensor_of(c.at("dx")), "clip");
    assert_true(std::abs(static_cast<double>(d.lo) - c.at("d_lo").get<double>()) < 1e-4);
    assert_true(std::abs(static_cast<double>(d.hi) - c.at("d_hi").get<double>()) < 1e-4);
  }
}

Tensor noise(const Shape &shape, std::uint32_t seed) {
  const Tensor x(QTN_FLOAT32, shape);
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 3);
  for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = std::round(normal(engine) * 64) / 64;
  if (x.count() > 4) {
    x.as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    x.as<float>()[1] = -std::numeric_limits<float>::infinity();
    x.as<float>()[2] = 3e38f;
    x.as<float>()[3] = -0.0f;
  }
  return x;
}

QuantizerPtr quantizer(qdtype dtype, Numerics numerics, std::int32_t axis, std::int64_t channels) {
  const bool nvidia = numerics == Numerics::nvidia;
  const IntegerRange range = integer_range(dtype);
  std::vector<double> scales;
  std::vector<std::int64_t> zero_points;
  for (std::int64_t c = 0; c < channels; ++c) {
    scales.push_back(c % 3 == 0 ? 0.03125 : 0.01 * static_cast<double>(c + 1));
    zero_points.push_back(nvidia ? 0 : range.lo + (range.hi - range.lo) * c / channels);
  }
  const qscheme scheme = channels == 1 ? QTN_PER_TENSOR_AFFINE : QTN_PER_CHANNEL_AFFINE;
  return std::make_shared<Quantizer>(dtype, scheme, axis, scales, zero_points, numerics);
}

/// The bits of quantize and dequantize: every type that fits, every numerics, every axis.
void as_quantized(void **) {
  for (const qdtype dtype : {QTN_INT2, QTN_UINT2, QTN_INT4, QTN_UINT4, QTN_INT8, QTN_UINT8, QTN_INT16, QTN_UINT16})
    for (int n = 0; n <= static_cast<int>(Numerics::tflite); ++n)
      for (const Shape &shape : {Shape{7, 5, 3, 11}, Shape{2, 18, 1, 40}, Shape{3, 4, 1, 300}})
        for (std::int32_t axis = -1; axis < 4; ++axis) {
          const auto numerics = static_cast<Numerics>(n);
          const auto q = quantizer(dtype, numerics, axis, axis < 0 ? 1 : shape[static_cast<std::size_t>(axis)]);
          const Tensor x = noise(shape, 1);
          expect_bits(fake_quantize(x, q), dequantize(quantize(x, q)),
                      cat(dtype_name(dtype), " ", numerics_name(numerics), " ", to_string(shape), " axis ", axis));
        }
}

/// Integers of a wider type, and views.
void narrowed_and_strided(void **) {
  const auto q =
      std::make_shared<Quantizer>(QTN_INT32, QTN_PER_CHANNEL_AFFINE, -1, std::vector<double>{0.25, 0.5},
                                  std::vector<std::int64_t>{1, -1}, Numerics::fbgemm, 0, IntegerRange{-4, 3});
  const std::int32_t axes[] = {1, 0};
  const Tensor x = noise({2, 9}, 2).permute(axes), dy = noise({2, 9}, 3).permute(axes);
  expect_bits(fake_quantize(x, q), dequantize(quantize(x, q)), "a view");
  expect_bits(fake_quantize_backward(dy, x, q), fake_quantize_backward(dy.clone(), x.clone(), q), "gradient of a view");
}

/// A gradient passes where amax is not exceeded, amax included, whatever float it is.
void nvidia_amax(void **) {
  std::mt19937 engine(5);
  std::uniform_real_distribution<float> exponent(-10, 10);
  for (int i = 0; i < 200; ++i) {
    const float amax = std::exp2(exponent(engine));
    ChooseOptions options;
    options.numerics = Numerics::nvidia;
    const double ends[] = {-static_cast<double>(amax), static_cast<double>(amax)};
    const auto q =
        choose_quantizer(QTN_INT8, QTN_PER_TENSOR_SYMMETRIC, 0, std::span(ends, 1), std::span(ends + 1, 1), options);
    const Tensor x = floats({5}, {amax, -amax, amax * 1.000001f, -amax * 1.000001f, amax * 0.999f});
    expect_equal(fake_quantize_backward(floats({5}, {1, 2, 3, 4, 5}), x, q), floats({5}, {1, 2, 0, 0, 5}),
                 cat("amax ", amax));
  }
}

/// Large tensors are done in pieces, by any number of threads: the bits are those of one thread, and the sums those of
/// the elements in double, except for the rounding of blocks.
void pieces(void **) {
  const std::vector<float> scales = {0.05f, 0.02f, 0.1f};
  const std::vector<std::int32_t> zero_points = {3, -5, 0};
  const struct {
    Shape shape;
    std::size_t axis, count;
  } cases[] = {{{200001}, 0, 1}, {{2, 3, 70000}, 1, 3}, {{50000, 3}, 1, 3}, {{3, 150000}, 0, 3}, {{30, 3, 3000}, 1, 3}};
  for (const auto &c : cases) {
    const Grids grids{std::span(scales).first(c.count),
                      std::span(zero_points).first(c.count),
                      -128,
                      127,
                      Rounding::division,
                      false,
                      c.axis};
    const Tensor x = noise(c.shape, 7),
                 dy = floats(c.shape, std::vector<float>(static_cast<std::size_t>(x.count()), 1));
    for (std::int64_t i = 0; i < 4; ++i) x.as<float>()[i] = 1;
    std::vector<double> want(c.count), want_zero(c.count);
    std::size_t inner = static_cast<std::size_t>(x.count());
    if (c.count > 1)
      for (std::size_t d = 0; d <= c.axis; ++d) inner /= static_cast<std::size_t>(c.shape[d]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.count()); ++i) {
      const std::size_t g = i / inner % c.count;
      const float v = x.as<const float>()[i] / scales[g], q = std::nearbyint(v) + static_cast<float>(zero_points[g]);
      const float end = std::clamp(q, -128.0f, 127.0f) - static_cast<float>(zero_points[g]);
      const bool inside = q >= -128 && q <= 127;
      want[g] += static_cast<double>(inside ? end - v : end);
      want_zero[g] -= inside ? 0 : static_cast<double>(scales[g]);
    }
    std::vector<float> first, first_zero;
    for (const int threads : {1, 2, 4}) {
      const ThreadScope scope(threads);
      std::vector<float> d_scales(c.count), d_zero_points(c.count);
      Scratch scratch;
      learned_backward(x, grids, dy, like(x), d_scales, d_zero_points, scratch);
      if (threads == 1) {
        first = d_scales;
        first_zero = d_zero_points;
        for (std::size_t g = 0; g < c.count; ++g) {
          const double off = std::abs(static_cast<double>(first[g]) - want[g]);
          if (off > 1e-6 * static_cast<double>(x.count())) fail_test("scale ", g, ": ", first[g], ", not ", want[g]);
          const double off_zero = std::abs(static_cast<double>(first_zero[g]) - want_zero[g]);
          if (off_zero > 1e-6 * std::abs(want_zero[g]))
            fail_test("zero ", g, ": ", first_zero[g], ", not ", want_zero[g]);
        }
      }
      assert_true(d_scales == first && d_zero_points == first_zero);
    }
  }
}

/// Grids given by inverses are those given by scales, if these are powers of two and x is not beyond amax.
void inverses(void **) {
  const std::vector<float> scales = {0.25f, 2.0f}, given = {4.0f, 0.5f};
  const std::vector<std::int32_t> zero_points(2);
  const Tensor x = floats({2, 4}, {0.3f, -1.5f, 1.75f, 9.0f, 0.3f, -13.0f, 14.0f, -20.0f});
  const Tensor dy = floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  Scratch scratch;
  std::vector<float> a(2), b(2), c(2), d(2);
  learned_backward(x, {scales, zero_points, -7, 7, Rounding::reciprocal}, dy, like(x), a, b, scratch);
  learned_backward(x, {given, zero_points, -7, 7, Rounding::reciprocal, true}, dy, like(x), c, d, scratch);
  assert_true(a == c && b == d && b[0] == -1.0f && b[1] == -16.0f);
}

void fused(void **) {
  std::size_t checked = 0, affine = 0;
  for (const Json &c : part("fused")) {
    const IntegerRange integers{c.at("quant_min").get<std::int64_t>(), c.at("quant_max").get<std::int64_t>()};
    const bool symmetric = c.at("symmetric").get<bool>();
    const ScaleZero chosen = choose_fused(integers, symmetric, c.at("min").get<float>(), c.at("max").get<float>());
    if (chosen.scale != c.at("scale").get<double>() || chosen.zero_point != c.at("zero_point").get<std::int64_t>())
      fail_test(c.dump(), ": ", nlohmann::json(chosen.scale).dump(), ", ", chosen.zero_point);
    ++checked;
    affine += symmetric && chosen.zero_point != 0 ? 1u : 0u;
  }
  assert_true(checked > 500 && affine > 10);
}

void nothing(void **) {
  const auto q = quantizer(QTN_INT8, Numerics::fbgemm, 1, 3);
  for (const Shape &shape : {Shape{0, 3, 2}, Shape{2, 3, 0}})
    assert_int_equal(fake_quantize_backward(like(Tensor(QTN_FLOAT32, shape)), Tensor(QTN_FLOAT32, shape), q).count(),
                     0);
  const std::vector<float> scales(3, 1.0f);
  const std::vector<std::int32_t> zero_points(3);
  std::vector<float> d_scales(3, 9.0f), d_zero_points(3, 9.0f);
  Scratch scratch;
  const Tensor x(QTN_FLOAT32, {0, 3});
  learned_backward(x, {scales, zero_points, 0, 255, Rounding::division, false, 1}, x, x, d_scales, d_zero_points,
                   scratch);
  assert_true(d_scales == std::vector<float>(3) && d_zero_points == std::vector<float>(3));
}

void errors(void **) {
  const auto eight = quantizer(QTN_INT8, Numerics::fbgemm, 0, 1);
  const Tensor x = floats({2}, {1, 2});
  expect_error(QTN_EDTYPE, "fake_quantize: x must be float32, not int64", [&] { fake_quantize(ints({1}), eight); });
  expect_error(QTN_EDTYPE, "fake_quantize_backward: dy must be float32, not quantized int8",
               [&] { fake_quantize_backward(quantize(x, eight), x, eight); });
  expect_error(QTN_ESHAPE, "fake_quantize_backward: dy is 1, x is 2",
               [&] { fake_quantize_backward(floats({1}, {1}), x, eight); });
  expect_error(QTN_ESHAPE, "3 scales for dimension 0 of a 2 tensor",
               [&] { fake_quantize(x, quantizer(QTN_INT8, Numerics::fbgemm, 0, 3)); });
  expect_error(QTN_EUNSUPPORTED, "fake_quantize: integers from -2147483648 to 2147483647 are more than 16 bits hold",
               [&] { fake_quantize(x, quantizer(QTN_INT32, Numerics::fbgemm, 0, 1)); });
  const auto wide =
      std::make_shared<Quantizer>(QTN_INT32, QTN_PER_TENSOR_AFFINE, 0, std::vector<double>{1},
                                  std::vector<std::int64_t>{0}, Numerics::fbgemm, 0, IntegerRange{-32769, 0});
  expect_error(QTN_EUNSUPPORTED, "integers from -32769 to 0 are more than 16 bits hold",
               [&] { fake_quantize(x, wide); });
  const auto of = [](qdtype dtype, qscheme scheme, std::int64_t block) {
    return std::make_shared<Quantizer>(dtype, scheme, 0, std::vector<double>{1}, std::vector<std::int64_t>{0},
                                       Numerics::fbgemm, block);
  };
  expect_error(QTN_EUNSUPPORTED, "fake_quantize: float8_e4m3fn is no grid of integers",
               [&] { fake_quantize(x, of(QTN_FLOAT8E4M3FN, QTN_PER_TENSOR_SYMMETRIC, 0)); });
  expect_error(QTN_EUNSUPPORTED, "fake_quantize: the quantizer is per block, not per tensor or per channel",
               [&] { fake_quantize(x, of(QTN_INT8, QTN_PER_BLOCK_SYMMETRIC, 2)); });
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {cmocka_unit_test(pytorch),
                              cmocka_unit_test(pytorch_learned),
                              cmocka_unit_test(clip),
                              cmocka_unit_test(as_quantized),
                              cmocka_unit_test(narrowed_and_strided),
                              cmocka_unit_test(nvidia_amax),
                              cmocka_unit_test(pieces),
                              cmocka_unit_test(inverses),
                              cmocka_unit_test(fused),
                              cmocka_unit_test(nothing),
                              cmocka_unit_test(errors)};
  return cmocka_run_group_tests_name("train/fake_quantize", tests, nullptr, nullptr);
}
