// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors of a few numbers: what they refuse, and how what they draw is spread.
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr std::int64_t kFar = std::int64_t{1} << 40, kHuge = std::numeric_limits<std::int64_t>::max(),
                       kLow = std::numeric_limits<std::int64_t>::min();

Tensor number(std::int64_t value) { return Tensor::from<std::int64_t>(QTN_INT64, {}, std::span(&value, 1)); }

void refuse(qstatus status, const std::string &text, const char *op, const Attrs &a, const Inputs &inputs,
            std::size_t outputs = 1) {
  expect_error(status, text, [&] { ops::infer_op(*ops::find_op(op), ops::Call{a, inputs, outputs}); });
}

Shape shape_of(const char *op, const Attrs &a, const Inputs &inputs) {
  return ops::infer_op(*ops::find_op(op), ops::Call{a, inputs})[0].shape;
}

void ranges_are_counted_before_they_are_made(void **) {
  const Tensor zero = number(0), one = number(1), far = number(kFar), low = number(kLow), huge = number(kHuge),
               unknown = Tensor::meta(QTN_INT64, {});
  assert_true(shape_of("Range", attrs(), {&zero, &far, &one}) == Shape{kFar});
  refuse(QTN_ESHAPE, "is no number of elements", "Range", attrs(), {&low, &huge, &one});
  refuse(QTN_EINVAL, "Range: delta is 0", "Range", attrs(), {&zero, &far, &zero});
  refuse(QTN_EUNSUPPORTED, "Range: input \"limit\" must be a constant", "Range", attrs(), {&zero, &unknown, &one});
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Tensor real = Tensor::scalar(0), step = Tensor::scalar(1), tiny = Tensor::scalar(1e-38f);
  for (const float limit : {nan, infinity, 3e38f}) {
    const Tensor t = Tensor::scalar(limit);
    refuse(QTN_ESHAPE, "Range: from 0", "Range", attrs(),
           {&real, &t, limit > 1e38f && limit < infinity ? &tiny : &step});
  }
}

void sizes_that_are_none(void **) {
  const Tensor minus = number(-1), zero = number(0), far = number(kHuge), x = Tensor::meta(QTN_FLOAT32, {2, 3}),
               k = ints({4}), low = ints({-1}), two = ints({1, 1}), signal = Tensor::meta(QTN_FLOAT32, {1, 4, 1});
  for (const char *window : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    refuse(QTN_EINVAL, "size is -1", window, attrs(), {&minus});
    refuse(QTN_ESHAPE, "too large", window, attrs(), {&far});
  }
  refuse(QTN_EINVAL, "TopK: k is 4, x 2x3 has 3 elements along axis 1", "TopK", attrs(), {&x, &k}, 2);
  refuse(QTN_EINVAL, "TopK: k is -1", "TopK", attrs(), {&x, &low}, 2);
  refuse(QTN_ESHAPE, "TopK: k must be one number, it holds 2", "TopK", attrs(), {&x, &two}, 2);
  refuse(QTN_EINVAL, "DFT: the length is 0", "DFT", attrs(), {&signal, &zero});
  refuse(QTN_EINVAL, "DFT: the length is 9223372036854775807 for a signal of 4", "DFT", attrs(), {&signal, &far});
  const Tensor last = number(2), nothing = Tensor::meta(QTN_FLOAT32, {1, 0, 1});
  refuse(QTN_EINVAL, "DFT: axis 2 is that of real and imaginary parts", "DFT", attrs(), {&signal, nullptr, &last});
  refuse(QTN_EINVAL, "DFT: the length is 0", "DFT", attrs(), {&nothing});
  refuse(QTN_EINVAL, "STFT: frame_step is 0", "STFT", attrs(), {&signal, &zero});
  refuse(QTN_EINVAL, "STFT: frames of 9223372036854775807 in a signal of 4", "STFT", attrs(),
         {&signal, &last, nullptr, &far});
  const Tensor hertz = Tensor::scalar(0), above = Tensor::scalar(1e9f), many = number(8), rate = number(8000);
  refuse(QTN_EINVAL, "MelWeightMatrix: dft_length is 0", "MelWeightMatrix", attrs(),
         {&many, &zero, &rate, &hertz, &hertz});
  refuse(QTN_EINVAL, "MelWeightMatrix: edges of 0 and 1e+09 Hz", "MelWeightMatrix", attrs(),
         {&many, &many, &rate, &hertz, &above});
  refuse(QTN_EINVAL, "RandomUniform: attribute \"shape\" is missing", "RandomUniform", attrs(), {});
  refuse(QTN_ESHAPE, "too large", "RandomNormal", attrs({{"shape", Ints{kHuge, 2}}}), {});
  refuse(QTN_EDTYPE, "RandomUniform: dtype is int64", "RandomUniform",
         attrs({{"shape", Ints{2}}, {"dtype", std::int64_t{QTN_INT64}}}), {});
  refuse(QTN_EINVAL, "Multinomial: sample_size is -1", "Multinomial", attrs({{"sample_size", std::int64_t{-1}}}), {&x});
  refuse(QTN_ESHAPE, "EyeLike: input 1x4x1 is no matrix", "EyeLike", attrs(), {&signal});
  refuse(QTN_EUNSUPPORTED, "EyeLike: dtype is 8", "EyeLike", attrs({{"dtype", std::int64_t{8}}}), {&x});
}

/// Frames are transformed two at a time: neither silence nor what is not finite gets anything of the other.
void frames_do_not_meet(void **) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor step = number(4), length = number(4),
               signal = floats({1, 20}, {1e30f, 2e30f, -1e30f, 0, 0, 0, 0, 0, 1, 2, 3, 4, nan, 1, 1, 1, 1, 1, 1, 1});
  const Tensor bins = run("STFT", attrs(), {&signal, &step, nullptr, &length})[0];
  assert_true(bins.shape() == (Shape{1, 5, 3, 2}));
  const float *got = bins.as<float>();
  const std::vector<float> silent(6, 0.0f), rising{10, 0, -2, 2, -2, 0}, even{4, 0, 0, 0, 0, 0};
  assert_true(std::equal(silent.begin(), silent.end(), got + 6) && std::equal(rising.begin(), rising.end(), got + 12));
  for (const std::ptrdiff_t real : {18, 20, 22}) assert_true(std::isnan(got[real]));
  assert_true(std::equal(even.begin(), even.end(), got + 24));
  const Tensor column = signal.reshaped({1, 20, 1}), wide = signal.reshaped({1, 1, 20, 1});
  const Tensor again = run("STFT", attrs(), {&column, &step, nullptr, &length})[0];
  assert_memory_equal(again.as<char>(), bins.as<char>(), bins.nbytes());
  refuse(QTN_ESHAPE, "STFT: signal 1x1x20x1 must be [batch, length]", "STFT", attrs(),
         {&wide, &step, nullptr, &length});
}

void far_diagonals(void **) {
  const Tensor x(QTN_FLOAT32, {2, 2});
  for (const std::int64_t k : {kLow, kHuge, std::int64_t{-2}, std::int64_t{2}})
    expect_equal(run("EyeLike", attrs({{"k", k}}), {&x})[0], floats({2, 2}, {0, 0, 0, 0}), 0, cat("k ", k));
}

void equations_are_checked(void **) {
  const Tensor x = Tensor::meta(QTN_FLOAT32, {2, 3}), wide = Tensor::meta(QTN_FLOAT32, {4096});
  const auto einsum = [&](qstatus status, const char *text, const char *equation, const Inputs &inputs) {
    refuse(status, text, "Einsum", attrs({{"equation", std::string(equation)}}), inputs);
  };
  einsum(QTN_EINVAL, "names 1 operands, there are 2", "ij", {&x, &x});
  einsum(QTN_EINVAL, "has \"ijk\" for an operand of 2x3", "ijk", {&x});
  einsum(QTN_EINVAL, "has \"i1\", which is no list of letters", "i1", {&x});
  einsum(QTN_EINVAL, "meets dimensions of 2 and 3 under one label", "ii", {&x});
  einsum(QTN_EINVAL, "makes \"k\" of nothing", "ij->k", {&x});
  einsum(QTN_EINVAL, "makes \"i\" twice", "ij->ii", {&x});
  einsum(QTN_EINVAL, "has \"i->j\"", "ij->i->j", {&x});
  einsum(QTN_ESHAPE, "too large", "a,b,c,d,e,f->abcdef", Inputs(6, &wide));
  einsum(QTN_EUNSUPPORTED, "65 operands are over the limit of 64", "a", Inputs(65, &wide));
  refuse(QTN_EINVAL, "Einsum: attribute \"equation\" is missing", "Einsum", attrs(), {&x});

  // A result of one number whose way there is long: each pair on its own is 2^24 elements, three together 2^36.
  const Tensor row(QTN_FLOAT32, {4096});
  std::fill_n(row.as<float>(), row.count(), 1.0f);
  const Tensor y = run("Einsum", attrs({{"equation", std::string("a,b,c->")}}), {&row, &row, &row})[0];
  expect_equal(y, Tensor::scalar(0x1p36f), 0, "sums that meet nothing else come first");
}

void operands_of_integers(void **) {
  const Tensor a = ints({7, 1}), zero = ints({0, 3}), x = floats({2}, {1, 2});
  expect_error(QTN_EINVAL, "Mod: division of integers by zero", [&] { run("Mod", attrs(), {&a, &zero}); });
  refuse(QTN_EDTYPE, "BitwiseAnd: a is float32", "BitwiseAnd", attrs(), {&x, &x});
  refuse(QTN_EINVAL, "BitShift: direction is \"UP\"", "BitShift", attrs({{"direction", std::string("UP")}}), {&a, &a});
  refuse(QTN_EDTYPE, "BitCast: float32 has 32 bits, int64 has 64", "BitCast", attrs({{"to", std::int64_t{QTN_INT64}}}),
         {&x});
  const Tensor scores(QTN_FLOAT32, {2, 3}), target = ints({0, 3});
  std::fill_n(scores.as<float>(), scores.count(), 0.0f);
  for (const char *loss : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    expect_error(QTN_EINVAL, "class 3 of target 1 is not in [0, 3)", [&] { run(loss, attrs(), {&scores, &target}); });
    refuse(QTN_ESHAPE, "input 2 must be [N, C, ...]", loss, attrs(), {&x, &target});
  }
}

// By a negative number, or by all bits and more, only the sign is left: the rule that opset 28 wrote down.
void shifts_beyond_all_bits(void **) {
  const Tensor x = ints({-8, -8, -8, 8, 8}), by = ints({1, 64, -1, 200, 2});
  const auto shifted = [&](const char *direction) {
    return int_values(run("BitShift", attrs({{"direction", std::string(direction)}}), {&x, &by})[0], "y");
  };
  assert_true(shifted("RIGHT") == (std::vector<std::int64_t>{-4, -1, -1, 0, 2}));
  assert_true(shifted("LEFT") == (std::vector<std::int64_t>{-16, 0, 0, 0, 32}));
}

struct Spread {
  double mean, variance;
};

Spread spread_of(const Tensor &t) {
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < t.count(); ++i) {
    const double v = static_cast<double>(t.as<const float>()[i]);
    sum += v;
    squares += v * v;
  }
  const auto n = static_cast<double>(t.count());
  return {sum / n, squares / n - sum / n * (sum / n)};
}

/// 100000 numbers: five standard deviations of mean and variance.
void draws_are_spread_as_they_should(void **) {
  const Ints shape{100'000};
  for (const double seed : {0.0, 1.5, -3.0}) {
    const Spread uniform =
        spread_of(run("RandomUniform", attrs({{"shape", shape}, {"seed", seed}, {"low", -1.0}, {"high", 3.0}}), {})[0]);
    assert_true(close(uniform.mean, 1, 0.01) && std::abs(uniform.variance - 4.0 / 3) < 0.02);
    const Spread normal =
        spread_of(run("RandomNormal", attrs({{"shape", shape}, {"seed", seed}, {"mean", 2.0}, {"scale", 3.0}}), {})[0]);
    assert_true(std::abs(normal.mean - 2) < 0.05 && std::abs(normal.variance - 9) < 0.2);
    const Tensor chance(QTN_FLOAT32, Shape(shape));
    std::fill_n(chance.as<float>(), chance.count(), 0.3f);
    assert_true(std::abs(spread_of(run("Bernoulli", attrs({{"seed", seed}}), {&chance})[0]).mean - 0.3) < 0.0075);
    const Tensor logarithms = floats({1, 3}, {std::log(1.0f), std::log(2.0f), std::log(7.0f)});
    const Tensor drawn =
        run("Multinomial", attrs({{"seed", seed}, {"sample_size", std::int64_t{100'000}}}), {&logarithms})[0];
    double counts[3] = {};
    for (const std::int64_t c : int_values(drawn, "drawn")) counts[c] += 1e-5;
    assert_true(std::abs(counts[0] - 0.1) < 0.005 && std::abs(counts[1] - 0.2) < 0.0065 &&
                std::abs(counts[2] - 0.7) < 0.0075);
  }
}

void draws_follow_from_the_seed(void **) {
  const auto drawn = [](const char *op, double seed) {
    return run(op, attrs({{"shape", Ints{50}}, {"seed", seed}}), {})[0];
  };
  for (const char *op : {"RandomUniform", "RandomNormal"}) {
    assert_true(equal(drawn(op, 7), drawn(op, 7)));
    assert_false(equal(drawn(op, 7), drawn(op, 8)));
    assert_true(equal(drawn(op, 0), run(op, attrs({{"shape", Ints{50}}}), {})[0]));
  }
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(ranges_are_counted_before_they_are_made),
      cmocka_unit_test(sizes_that_are_none),
      cmocka_unit_test(frames_do_not_meet),
      cmocka_unit_test(far_diagonals),
      cmocka_unit_test(equations_are_checked),
      cmocka_unit_test(operands_of_integers),
      cmocka_unit_test(shifts_beyond_all_bits),
      cmocka_unit_test(draws_are_spread_as_they_should),
      cmocka_unit_test(draws_follow_from_the_seed),
  };
  return cmocka_run_group_tests_name("ops/generator", tests, nullptr, nullptr);
}
