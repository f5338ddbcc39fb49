// SPDX-License-Identifier: Apache-2.0
// Indices, lengths, regions and sizes that a file or an input may make up: an error with the values, at once.
#include "ops/eager.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max(),
                       kLow = std::numeric_limits<std::int64_t>::min(), kMany = std::int64_t{1} << 40;

Tensor ones(const Shape &shape) {
  const Tensor t(QTN_FLOAT32, shape);
  std::fill_n(t.as<float>(), t.count(), 1.0f);
  return t;
}

Tensor shaped(const Ints &values, const Shape &shape) { return ints(values).reshaped(shape); }

void refuse(qstatus status, const std::string &text, const char *op, const Attrs &a, const Inputs &inputs,
            std::size_t outputs = 1) {
  expect_error(status, text, [&] { run(op, a, inputs, outputs); });
}

void indices_outside(void **) {
  const Tensor x = ones({2, 3}), row = ones({1, 3}), two = ones({2});
  for (const std::int64_t index : {std::int64_t{2}, std::int64_t{-3}, kHuge, kLow}) {
    const std::string text = cat("index ", index, " is outside dimension 0 of 2x3");
    const Tensor at = shaped({index, 0, 0}, {1, 3}), tuples = shaped({index}, {1, 1});
    refuse(QTN_EINVAL, "GatherElements: " + text, "GatherElements", attrs(), {&x, &at});
    refuse(QTN_EINVAL, "ScatterElements: " + text, "ScatterElements", attrs(), {&x, &at, &row});
    const Tensor same = shaped({index, index, index}, {1, 3});
    refuse(QTN_EINVAL, "GatherElements: " + text, "GatherElements", attrs(), {&x, &same});
    refuse(QTN_EINVAL, "ScatterElements: " + text, "ScatterElements", attrs(), {&x, &same, &row});
    refuse(QTN_EINVAL, "GatherND: " + text, "GatherND", attrs(), {&x, &tuples});
    refuse(QTN_EINVAL, "ScatterND: " + text, "ScatterND", attrs(), {&x, &tuples, &row});
  }
  const Tensor none = ones({0, 3}), first = shaped({0, 0, 0}, {1, 3});
  refuse(QTN_EINVAL, "index 0 is outside dimension 0 of 0x3", "GatherElements", attrs(), {&none, &first});
  const Tensor wide = shaped({0, 0, 0, 0}, {1, 4}), deep = shaped({0, 0, 0}, {1, 3});
  refuse(QTN_ESHAPE, "indices 1x4 do not lie in x 2x3", "GatherElements", attrs(), {&x, &wide});
  refuse(QTN_ESHAPE, "updates 2 at indices 1x4", "ScatterElements", attrs(), {&x, &wide, &two});
  refuse(QTN_ESHAPE, "indices 1x3 do not fit x 2x3", "GatherND", attrs(), {&x, &deep});
  refuse(QTN_EINVAL, "batch_dims is 2", "GatherND", attrs({{"batch_dims", std::int64_t{2}}}), {&x, &deep});
  refuse(QTN_ESHAPE, "indices 1x3 name no places", "ScatterND", attrs(), {&x, &deep, &two});
  refuse(QTN_EINVAL, "reduction is \"mean\"", "ScatterND", attrs({{"reduction", std::string("mean")}}),
         {&x, &deep, &two});

  const Tensor image = ones({1, 1, 1, 2}), places = shaped({0, 4}, {1, 1, 1, 2}), lost = shaped({0, -1}, {1, 1, 1, 2});
  const Attrs kernel = attrs({{"kernel_shape", Ints{1, 2}}, {"strides", Ints{1, 2}}});
  refuse(QTN_EINVAL, "MaxUnpool: index 4 is outside of 1x1x1x4", "MaxUnpool", kernel, {&image, &places});
  refuse(QTN_EINVAL, "MaxUnpool: index -1", "MaxUnpool", kernel, {&image, &lost});
  const Tensor small = ints({1, 1, 1, 3});
  refuse(QTN_ESHAPE, "output_shape 1x1x1x3 does not hold 1x1x1x4", "MaxUnpool", kernel, {&image, &lost, &small});

  const Tensor cache = ones({1, 4, 2}), update = ones({1, 2, 2}), late = ints({3}), early = ints({-1});
  refuse(QTN_EINVAL, "TensorScatter: 2 steps from 3 on", "TensorScatter", attrs(), {&cache, &update, &late});
  refuse(QTN_EINVAL, "2 steps from -1 on", "TensorScatter", attrs({{"mode", std::string("circular")}}),
         {&cache, &update, &early});
  const Tensor heads = ones({1, 1, 2, 2}), turns = ones({3, 1}), ids = shaped({0, 3}, {1, 2});
  refuse(QTN_EINVAL, "RotaryEmbedding: index 3 is outside dimension 0 of 3x1", "RotaryEmbedding", attrs(),
         {&heads, &turns, &turns, &ids});
}

/// A byte of a truth counts once, whatever it is.
void truths_of_any_bytes(void **) {
  const Tensor x(QTN_BOOL, {2, 3});
  std::copy_n("\0\2\xff\0\0\1", 6, x.as<char>());
  expect_equal(run("NonZero", attrs(), {&x})[0], shaped({0, 0, 1, 1, 2, 2}, {2, 3}), 0, "places");
}

void lengths_outside(void **) {
  const Tensor x = ones({2, 1, 1}), w = ones({1, 1, 1}), w3 = ones({1, 3, 1}), w4 = ones({1, 4, 1});
  const auto lengths = [](std::int32_t n) { return Tensor::from<std::int32_t>(QTN_INT32, {1}, std::span(&n, 1)); };
  for (const std::int32_t n : {3, -1, std::numeric_limits<std::int32_t>::max()}) {
    const Tensor given = lengths(n);
    const std::string text = cat("a sequence of ", n, " steps, X has 2");
    refuse(QTN_EINVAL, "RNN: " + text, "RNN", attrs(), {&x, &w, &w, nullptr, &given}, 2);
    refuse(QTN_EINVAL, "GRU: " + text, "GRU", attrs(), {&x, &w3, &w3, nullptr, &given}, 2);
    refuse(QTN_EINVAL, "LSTM: " + text, "LSTM", attrs(), {&x, &w4, &w4, nullptr, &given}, 3);
  }
  refuse(QTN_EINVAL, "LSTM: hidden_size is 7", "LSTM", attrs({{"hidden_size", std::int64_t{7}}}), {&x, &w4, &w4});
  refuse(QTN_ESHAPE, "LSTM: W is 1x1x1", "LSTM", attrs(), {&x, &w, &w4});
  refuse(QTN_EINVAL, "RNN: activation \"Sinh\" is unknown", "RNN", attrs({{"activations", std::string("Sinh")}}),
         {&x, &w, &w});
  refuse(QTN_EINVAL, "GRU: 3 activations given, 2 expected", "GRU", attrs({{"activations", std::string("Tanh,,Tanh")}}),
         {&x, &w3, &w3});
  const Tensor pair = ones({2, 2});
  for (const std::int64_t n : {std::int64_t{3}, std::int64_t{-1}, kHuge}) {
    const Tensor given = ints({1, n});
    refuse(QTN_EINVAL, cat("ReverseSequence: a sequence of ", n, " steps"), "ReverseSequence", attrs(),
           {&pair, &given});
  }
}

void sizes_without_end(void **) {
  const Tensor x = ones({1, 1, 2, 2}), zero = ints({0}), two = ints({0, 1});
  const Tensor none = ints({0});
  refuse(QTN_EINVAL, "OneHot: depth is 0", "OneHot", attrs(), {&zero, &none, &two});
  const Tensor size = ints({1, 1, kMany, 2}), theta = ones({1, 2, 3});
  refuse(QTN_EINVAL, "Resize: a size is 1099511627776", "Resize", attrs(), {&x, nullptr, nullptr, &size});
  const Tensor negative = ints({1, 1, -2, 2}), far = ints({1, 1, kHuge, kHuge});
  refuse(QTN_EINVAL, "AffineGrid: a dimension of size is -2", "AffineGrid", attrs(), {&theta, &negative});
  refuse(QTN_EINVAL, "CenterCropPad: a dimension of shape is -2", "CenterCropPad", attrs(), {&x, &negative});
  refuse(QTN_ESHAPE, "too large", "CenterCropPad", attrs(), {&x, &far});
  const Tensor column = ones({1, 4, 1}), image = ints({kHuge, 2}), block = ints({2, 2});
  refuse(QTN_EINVAL, "Col2Im: axis 0 of the image is 9223372036854775807", "Col2Im", attrs(),
         {&column, &image, &block});
  refuse(QTN_EINVAL, "MaxUnpool: kernel 0", "MaxUnpool", attrs({{"kernel_shape", Ints{0, 1}}}),
         {&x, std::make_unique<Tensor>(shaped({0, 0, 0, 0}, {1, 1, 2, 2})).get()});
}

void regions_without_end(void **) {
  const Tensor x = ones({1, 1, 4, 4}), first = ints({0}), second = ints({1});
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float edge : {1e30f, -1e30f, 1e8f, kNan, std::numeric_limits<float>::infinity()}) {
    const Tensor roi = floats({1, 4}, {0, 0, edge, edge}), back = floats({1, 4}, {edge, 0, 4, 4});
    if (edge > 0) refuse(QTN_EINVAL, "RoiAlign: a region of", "RoiAlign", attrs(), {&x, &roi, &first});
    if (edge != 1e8f) refuse(QTN_EINVAL, "RoiAlign: a region of", "RoiAlign", attrs(), {&x, &back, &first});
  }
  const Tensor roi = floats({1, 4}, {0, 0, 4, 4});
  refuse(QTN_EINVAL, "with 1.09951e+12 samples", "RoiAlign", attrs({{"sampling_ratio", kMany}}), {&x, &roi, &first});
  refuse(QTN_EINVAL, "RoiAlign: index 1 is outside dimension 0", "RoiAlign", attrs(), {&x, &roi, &second});
  const Tensor lost = floats({1, 5}, {kNan, 0, 0, 1, 1}), other = floats({1, 5}, {3, 0, 0, 1, 1});
  const Attrs pooled = attrs({{"pooled_shape", Ints{1, 1}}});
  refuse(QTN_EINVAL, "MaxRoiPool: region 0 has a nan", "MaxRoiPool", pooled, {&x, &lost});
  refuse(QTN_EINVAL, "MaxRoiPool: index 3 is outside", "MaxRoiPool", pooled, {&x, &other});

  // A place that is no number, or far away, lies outside.
  const Tensor grid = floats({1, 1, 2, 2}, {kNan, 0, 1e30f, 0});
  expect_equal(run("GridSample", attrs(), {&x, &grid})[0], floats({1, 1, 1, 2}, {0, 0}), 0, "outside");
}

void attention_must_fit(void **) {
  const Tensor q = ones({1, 2, 3, 4}), k = ones({1, 2, 5, 4}), flat = ones({1, 3, 7}), mask = ones({2, 5});
  refuse(QTN_ESHAPE, "Attention: Q is 1x2x3x4, K 1x3x7", "Attention", attrs(), {&q, &flat, &flat});
  refuse(QTN_EINVAL, "2 heads do not share the 7 features of Q", "Attention", attrs({{"q_num_heads", std::int64_t{2}}}),
         {&flat, &flat, &flat});
  refuse(QTN_ESHAPE, "attn_mask 2x5 does not broadcast to scores 1x2x3x5", "Attention", attrs(), {&q, &k, &k, &mask});
  refuse(QTN_EINVAL, "past_key and past_value go together", "Attention", attrs(), {&q, &k, &k, nullptr, &k});
  const Tensor lengths = ints({kHuge});
  assert_true(equal(run("Attention", attrs(), {&q, &k, &k, nullptr, nullptr, nullptr, &lengths})[0],
                    run("Attention", attrs(), {&q, &k, &k})[0]));
}

/// Heads without features cost nothing, so there may be any number of them.
void attention_of_nothing(void **) {
  const std::int64_t many = std::int64_t{1} << 56;
  const Tensor q = ones({1, 0, 0}), k = ones({1, 3, 0}), v = ones({1, 3, 2});
  const auto heads = [](std::int64_t count) {
    return attrs({{"q_num_heads", count}, {"kv_num_heads", std::int64_t{1}}});
  };
  expect_error(QTN_ESHAPE, "too large", [&] { run("Attention", heads(many << 5), {&q, &k, &v}, 3); });
  const std::vector<Tensor> got = run("Attention", heads(many), {&q, &k, &v}, 3);
  assert_true(got[0].shape() == Shape({1, 0, many * 2}));
  expect_equal(got[2], v.reshaped({1, 1, 3, 2}), 0, "present_value");
  const Tensor one = ones({1, 0, 4}), keys = ones({1, 3, 4});
  const std::vector<Tensor> same =
      run("MultiHeadAttention", attrs({{"num_heads", std::int64_t{2}}}), {&one, &keys, &keys}, 3);
  assert_true(same[0].shape() == Shape({1, 0, 4}));
  expect_equal(same[1], ones({1, 2, 3, 2}), 0, "present_key");
}

/// Rows of no elements have a mean, which is no number.
void rows_of_nothing(void **) {
  const Tensor x = ones({2, 0}), scale = ones({0});
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Tensor> got = run("LayerNormalization", attrs(), Inputs{&x, &scale}, 3);
  expect_equal(got[1], floats({2, 1}, {kNan, kNan}), 0, "mean");
  expect_equal(got[2], floats({2, 1}, {kNan, kNan}), 0, "inverse deviation");
}

void blocks_without_end(void **) {
  const Tensor x = ones({1, 2}), b(QTN_UINT8, {1, 1, 1}), scale = ones({1});
  for (const std::int64_t block : {kHuge - 1, kLow, std::int64_t{0}, kMany + 2})
    for (const std::int64_t bits : {2, 4, 8})
      refuse(QTN_EINVAL, cat("block_size is ", block), "MatMulNBits",
             attrs({{"K", std::int64_t{2}}, {"N", std::int64_t{1}}, {"bits", bits}, {"block_size", block}}),
             {&x, &b, &scale});
}

/// Rows without elements are all equal, as NumPy has it, and any number of them takes no memory.
void rows_without_elements(void **) {
  const Tensor five = ones({5, 0}), many = ones({kMany, 0}), none = ones({0, 3});
  const Attrs rows = attrs({{"axis", std::int64_t{0}}});
  const auto found = run("Unique", rows, {&five}, 4);
  assert_true(found[0].shape() == Shape({1, 0}));
  expect_equal(found[1], ints({0}), 0, "first places");
  expect_equal(found[2], ints({0, 0, 0, 0, 0}), 0, "which of them each is");
  expect_equal(found[3], ints({5}), 0, "how many");
  assert_true(run("Unique", rows, {&many}, 2)[0].shape() == Shape({1, 0}));
  assert_int_equal(run("Unique", rows, {&none}, 4)[3].count(), 0);
}

/// Taps that lie farther apart than memory reaches read what is there.
void taps_far_apart(void **) {
  const Tensor x = Tensor::from<float>(QTN_FLOAT32, {1, 1, 3}, std::vector<float>{1, 2, 3});
  const Tensor w = Tensor::from<float>(QTN_FLOAT32, {1, 1, 2}, std::vector<float>{5, 2});
  const Tensor y = Tensor::from<float>(QTN_FLOAT32, {1, 1, 3}, std::vector<float>{2, 4, 6});
  expect_equal(run("CausalConvWithState", attrs({{"dilation", kMany}}), {&x, &w})[0], y, 0, "y");
  refuse(QTN_ENOMEM, "", "CausalConvWithState", attrs({{"dilation", kMany << 8}}), {&x, &w}, 2);
}

/// As large as a block may be said to be, it is all of the axis.
void blocks_beyond_the_axis(void **) {
  const std::int16_t codes[] = {1, -2, 3, 4, 5, -6};
  const float scales[] = {-0.5f, 2, 0.25f};
  const Tensor q = Tensor::from<std::int16_t>(QTN_INT16, {3, 2}, codes),
               s = Tensor::from<float>(QTN_FLOAT32, {3, 1}, scales);
  const Tensor y = Tensor::from<float>(QTN_FLOAT32, {3, 2}, std::vector<float>{-0.5f, 1, 6, 8, 1.25f, -1.5f});
  for (const std::int64_t block : {std::int64_t{2}, kMany, kHuge})
    expect_equal(run("DequantizeLinear", attrs({{"axis", std::int64_t{1}}, {"block_size", block}}), {&q, &s})[0], y, 0,
                 cat("blocks of ", block));
}

/// Elements of an 8-bit tensor are moved as they are, and zeros are those of its grid.
void moved_integers(void **) {
  const QuantizerPtr grid = per_tensor(QTN_UINT8, 0.5, 10);
  const auto codes = [&](const Shape &shape, std::initializer_list<std::uint8_t> values) {
    return Tensor::from<std::uint8_t>(QTN_UINT8, shape, std::span(values.begin(), values.size())).with_quantizer(grid);
  };
  const auto expect = [&](const char *op, const Attrs &a, const Inputs &inputs, const Tensor &wanted) {
    const Tensor got = ops::run_eager(op, inputs, 1, a)[0];
    if (!equal(got, wanted)) fail_test(op, ": ", describe(got), ", not ", describe(wanted));
  };
  const Tensor x = codes({2, 2}, {1, 2, 3, 255});
  const Tensor at = shaped({1, 0}, {1, 2}), tuple = shaped({1, 1}, {1, 2}), lengths = ints({2, 1}), size = ints({3, 2});
  const bool truths[] = {false, true};
  const Tensor chosen = Tensor::from<bool>(QTN_BOOL, {2}, truths);
  expect("GatherElements", attrs(), {&x, &at}, codes({1, 2}, {3, 2}));
  expect("GatherND", attrs(), {&x, &tuple}, codes({1}, {255}));
  expect("Trilu", attrs(), {&x}, codes({2, 2}, {1, 2, 10, 255}));
  expect("ReverseSequence", attrs(), {&x, &lengths}, codes({2, 2}, {3, 2, 1, 255}));
  expect("Compress", attrs({{"axis", std::int64_t{0}}}), {&x, &chosen}, codes({1, 2}, {3, 255}));
  expect("CenterCropPad", attrs(), {&x, &size}, codes({3, 2}, {1, 2, 3, 255, 10, 10}));
  const Tensor row = codes({1, 2}, {7, 8}), first = shaped({0}, {1, 1});
  expect("ScatterElements", attrs(), {&x, &at, &row}, codes({2, 2}, {1, 8, 7, 255}));
  expect("ScatterND", attrs(), {&x, &first, &row}, codes({2, 2}, {7, 8, 3, 255}));
  expect("ScatterND", attrs({{"reduction", std::string("max")}}), {&x, &first, &row}, codes({2, 2}, {7, 8, 3, 255}));
  const Tensor image = codes({1, 1, 2, 2}, {1, 2, 3, 255});
  expect("GlobalMaxPool", attrs(), {&image}, codes({1, 1, 1, 1}, {255}));
  const std::vector<Tensor> pooled =
      ops::run_eager("MaxPool", Inputs{&image}, 2, attrs({{"kernel_shape", Ints{1, 2}}}));
  assert_true(equal(pooled[0], codes({1, 1, 2, 1}, {2, 255})));
  assert_true(equal(pooled[1], shaped({1, 3}, {1, 1, 2, 1})));
}

/// Codes of tiny floats are chosen among as the numbers for which they stand.
void moved_floats(void **) {
  const QuantizerPtr grid = per_tensor(QTN_FLOAT8E4M3FN, 0.5, 0);
  const Tensor real = floats({5, 7}, {0,  0.5f, 1,  1.5f, 2,  3,  4,  5,  -0.5f, -1, -1.5f, -2, -3, -4, 6, 7, 8, 9,
                                      10, 11,   12, 13,   14, 15, 16, -6, -7,    -8, -9,    1,  2,  3,  4, 5, 6}),
               x = quantize(real, grid), y = quantize(real.reshaped({5, 7}), grid);
  const bool truth[] = {true};
  const Tensor yes = Tensor::from<bool>(QTN_BOOL, {}, truth), pads = ints({1, 0, 0, 1}), fill = floats({}, {1.5f});
  const auto expect = [&](const char *op, const Attrs &a, const Inputs &inputs) {
    std::vector<Tensor> reals;
    for (const Tensor *t : inputs) reals.push_back(t->quantized() ? dequantize(*t) : *t);
    Inputs floats_in;
    for (const Tensor &t : reals) floats_in.push_back(&t);
    const Tensor got = ops::run_eager(op, inputs, 1, a)[0];
    expect_equal(got.quantized() ? dequantize(got) : got, run(op, a, floats_in)[0], 0, op);
  };
  expect("Where", attrs(), {&yes, &x, &y});
  expect("Pad", attrs(), {&x, &pads, &fill});
  expect("Max", attrs(), {&x, &y});
  const Tensor image = quantize(real.reshaped({1, 1, 5, 7}), grid);
  expect("MaxPool", attrs({{"kernel_shape", Ints{2, 2}}}), {&image});
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(indices_outside),     cmocka_unit_test(lengths_outside),
      cmocka_unit_test(sizes_without_end),   cmocka_unit_test(regions_without_end),
      cmocka_unit_test(attention_must_fit),  cmocka_unit_test(moved_integers),
      cmocka_unit_test(moved_floats),        cmocka_unit_test(attention_of_nothing),
      cmocka_unit_test(blocks_without_end),  cmocka_unit_test(rows_of_nothing),
      cmocka_unit_test(truths_of_any_bytes), cmocka_unit_test(rows_without_elements),
      cmocka_unit_test(taps_far_apart),      cmocka_unit_test(blocks_beyond_the_axis),
  };
  return cmocka_run_group_tests_name("ops/untrusted", tests, nullptr, nullptr);
}
