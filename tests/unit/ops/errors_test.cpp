// SPDX-License-Identifier: Apache-2.0
// What an operator refuses, and in which words: calls that untrusted files can make.
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max(),
                       kLow = std::numeric_limits<std::int64_t>::min();

void refuse(qstatus status, const std::string &text, const char *op, const Attrs &a, const Inputs &inputs,
            std::size_t outputs = 1) {
  expect_error(status, text, [&] { ops::infer_op(*ops::find_op(op), ops::Call{a, inputs, outputs}); });
}

Tensor meta(const Shape &shape) { return Tensor::meta(QTN_FLOAT32, shape); }

void calls_must_fit_the_schema(void **) {
  const Tensor x = meta({1, 3, 8, 8}), words = ints({1});
  refuse(QTN_EINVAL, "Conv: 1 inputs given, 2 to 3 expected", "Conv", attrs(), {&x});
  refuse(QTN_EINVAL, "Conv: input 1 is absent", "Conv", attrs(), {&x, nullptr});
  refuse(QTN_EINVAL, "Relu: unknown attribute \"alpha\"", "Relu", attrs({{"alpha", 1.0}}), {&x});
  refuse(QTN_EINVAL, "Relu: 2 outputs asked for, of at most 1", "Relu", attrs(), {&x}, 2);
  refuse(QTN_EINVAL, "Concat: 0 inputs given, 1 or more expected", "Concat", attrs({{"axis", std::int64_t{0}}}), {});
  refuse(QTN_EDTYPE, "Add: inputs are float32 and int64", "Add", attrs(), {&x, &words});
  refuse(QTN_EUNSUPPORTED, "Cast: to is 8", "Cast", attrs({{"to", std::int64_t{8}}}), {&x});
  refuse(QTN_EUNSUPPORTED, "Cast: to is 8", "Cast", attrs({{"to", std::int64_t{8}}}), {&x});
  refuse(QTN_EDTYPE, "Exp: x is int64, not float32 or float64", "Exp", attrs(), {&words});
}

void shapes_must_fit(void **) {
  const Tensor x = meta({1, 48, 8, 8}), w = meta({32, 64, 3, 3}), row = meta({2, 3}), small = meta({4, 1});
  refuse(QTN_ESHAPE, "Conv: weight wants 64 input channels, x has 48 (x 1x48x8x8, weight 32x64x3x3)", "Conv", attrs(),
         {&x, &w});
  refuse(QTN_ESHAPE, "Gemm: B wants 4 input features, A has 3 (A 2x3, B 4x1)", "Gemm", attrs(), {&row, &small});
  refuse(QTN_ESHAPE, "MatMul: b wants 4 input features, a has 3", "MatMul", attrs(), {&row, &small});
  refuse(QTN_ESHAPE, "Add: shapes 2x3 and 4x1 do not broadcast", "Add", attrs(), {&row, &small});
  refuse(QTN_ESHAPE, "Concat: shapes 2x3 and 4x1 differ", "Concat", attrs({{"axis", std::int64_t{0}}}), {&row, &small});
  const Tensor wide = meta({0, 5}), tall = meta({4, 0}), none = meta({0}), deep = meta({1, 0, 1});
  const Attrs columns = attrs({{"axis", std::int64_t{1}}}), rows = attrs({{"axis", std::int64_t{0}}});
  refuse(QTN_ESHAPE, "Concat: shapes 2x3 and 0x5 differ beside axis 1", "Concat", columns, {&wide, &row});
  refuse(QTN_ESHAPE, "Concat: shapes 0x5 and 4x0 differ beside axis 0", "Concat", rows, {&wide, &tall});
  refuse(QTN_ESHAPE, "Concat: shapes 2x3 and 0 differ", "Concat", rows, {&row, &none});
  refuse(QTN_EINVAL, "Concat: axis 2", "Concat", attrs({{"axis", std::int64_t{2}}}), {&deep, &row});
}

void shapes_must_be_known(void **) {
  const Tensor x = meta({2, 3}), unknown = Tensor::meta(QTN_INT64, {2});
  refuse(QTN_EUNSUPPORTED, "Reshape: input \"shape\" must be a constant", "Reshape", attrs(), {&x, &unknown});
  refuse(QTN_EUNSUPPORTED, "Pad: input \"pads\" must be a constant", "Pad", attrs(), {&x, &unknown});
  refuse(QTN_EUNSUPPORTED, "Slice: input \"starts\" must be a constant", "Slice", attrs(), {&x, &unknown, &unknown});
}

void hostile_windows(void **) {
  const Tensor x = meta({1, 1, 5, 5}), w = meta({1, 1, 3, 3});
  const auto conv = [&](qstatus status, const char *text, const char *key, const Ints &values) {
    refuse(status, text, "Conv", attrs({{key, values}}), {&x, &w});
  };
  conv(QTN_EINVAL, "Conv: strides of 0", "strides", {0, 1});
  conv(QTN_EINVAL, "Conv: strides of -1", "strides", {1, -1});
  conv(QTN_EINVAL, "Conv: strides has 1 values for 2 spatial axes", "strides", {1});
  conv(QTN_EINVAL, "Conv: dilations of 0", "dilations", {0, 1});
  conv(QTN_EINVAL, "Conv: dilations of 9223372036854775807", "dilations", {1, kHuge});
  conv(QTN_EINVAL, "Conv: pads of -9223372036854775808", "pads", {0, kLow, 0, 0});
  conv(QTN_EINVAL, "Conv: pads has 3 values", "pads", {0, 0, 0});
  conv(QTN_EINVAL, "Conv: kernel_shape is 5x5", "kernel_shape", {5, 5});
  conv(QTN_ESHAPE, "Conv: kernel 3 with dilation 2147483647 does not fit", "dilations", {1, 2147483647});
  refuse(QTN_EINVAL, "Conv: group is 0", "Conv", attrs({{"group", std::int64_t{0}}}), {&x, &w});
  refuse(QTN_EINVAL, "Conv: auto_pad is \"MIDDLE\"", "Conv", attrs({{"auto_pad", std::string("MIDDLE")}}), {&x, &w});
  const Ints far(4, 2147483647);
  refuse(QTN_EINVAL, "MaxPool: pads", "MaxPool", attrs({{"kernel_shape", Ints{3, 3}}, {"pads", far}}), {&x});
  refuse(QTN_EINVAL, "AveragePool: attribute \"kernel_shape\" is missing", "AveragePool", attrs(), {&x});
  refuse(QTN_EINVAL, "storage_order is 2", "MaxPool",
         attrs({{"kernel_shape", Ints{3, 3}}, {"storage_order", std::int64_t{2}}}), {&x});
  const Tensor line = meta({1, 2});
  refuse(QTN_ESHAPE, "Conv: x must have 1 to 3 spatial axes", "Conv", attrs(), {&line, &w});

  // Sizes of 2^32 by 2^32 outputs, two bytes short of no memory in the world.
  const Tensor wide = meta({1, 65536, 5, 5}), many = meta({1, 65536, 1, 1});
  refuse(QTN_ESHAPE, "too large", "Conv", attrs({{"pads", far}}), {&wide, &many});
}

void hostile_indices(void **) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto reshape = [&](qstatus status, const char *text, const Ints &shape) {
    const Tensor t = ints(shape);
    refuse(status, text, "Reshape", attrs(), {&x, &t});
  };
  reshape(QTN_ESHAPE, "Reshape: x 2x3 does not fit", {4, -1});
  reshape(QTN_EINVAL, "more than one dimension is -1", {-1, -1});
  reshape(QTN_EINVAL, "dimension 0 is -2", {-2, 3});
  reshape(QTN_ESHAPE, "too large", {kHuge, kHuge});
  reshape(QTN_ESHAPE, "rank 9", Ints(9, 1));

  const Tensor pads = ints({kHuge, 0, kHuge, 0}), cuts = ints({kLow, 0, 0, 0}), one = ints({1}), twice = ints({0, 0}),
               far = ints({kHuge}), low = ints({kLow}), zero = ints({0});
  refuse(QTN_ESHAPE, "Pad: dimensions", "Pad", attrs(), {&x, &pads});
  refuse(QTN_ESHAPE, "Pad: pads of -9223372036854775808", "Pad", attrs(), {&x, &cuts});
  refuse(QTN_EINVAL, "Pad: mode is \"odd\"", "Pad", attrs({{"mode", std::string("odd")}}), {&x, &pads});
  refuse(QTN_EINVAL, "Squeeze: axis 0 is given twice", "Squeeze", attrs(), {&x, &twice});
  refuse(QTN_EINVAL, "Unsqueeze: axis 9223372036854775807", "Unsqueeze", attrs(), {&x, &far});
  refuse(QTN_EINVAL, "Slice: step is 0", "Slice", attrs(), {&x, &zero, &one, &zero, &zero});
  refuse(QTN_EINVAL, "Transpose: axis 0 is given twice", "Transpose", attrs({{"perm", Ints{0, 0}}}), {&x});
  refuse(QTN_ESHAPE, "Split: a dimension of 2 does not split into 3", "Split", attrs(), {&x}, 3);
  refuse(QTN_EINVAL, "Concat: axis 5", "Concat", attrs({{"axis", std::int64_t{5}}}), {&x});
  expect_error(QTN_EINVAL, "Gather: index 9223372036854775807 is outside dimension 0", [&] {
    run("Gather", attrs(), {&x, &far});
  });
  expect_error(QTN_EINVAL, "Div: division of integers by zero", [&] { run("Div", attrs(), {&one, &zero}); });

  // Ends beyond everything are ends, in both directions.
  expect_equal(run("Slice", attrs(), {&x, &low, &far, &one, &far})[0], floats({2, 1}, {1, 4}), 0, "far");
  expect_equal(run("Slice", attrs(), {&x, &far, &low, &one, &low})[0], floats({2, 1}, {3, 6}), 0, "far back");
  const Tensor minus = ints({-1}), lowest = ints({kLow});
  assert_int_equal(int_values(run("Div", attrs(), {&lowest, &minus})[0], "y")[0], kLow);
}

void hostile_transposed_windows(void **) {
  const Tensor x = meta({1, 2, 5, 5}), w = meta({2, 1, 3, 3}), other = meta({3, 1, 3, 3});
  const auto transposed = [&](qstatus status, const char *text, const char *key, const Ints &values) {
    refuse(status, text, "ConvTranspose", attrs({{key, values}}), {&x, &w});
  };
  transposed(QTN_EINVAL, "ConvTranspose: strides of 0", "strides", {0, 1});
  transposed(QTN_EINVAL, "ConvTranspose: output_padding of -1", "output_padding", {-1, 0});
  transposed(QTN_EINVAL, "ConvTranspose: output_shape has 4 values for 2 spatial axes", "output_shape", {1, 1, 9, 9});
  transposed(QTN_EINVAL, "ConvTranspose: output_shape of 0", "output_shape", {0, 9});
  transposed(QTN_ESHAPE, "ConvTranspose: an output of -1 from x 1x2x5x5", "pads", {4, 0, 4, 0});
  transposed(QTN_ESHAPE, "is out of range", "strides", {2147483647, 1});
  transposed(QTN_ESHAPE, "is out of range", "dilations", {2147483647, 2147483647});
  transposed(QTN_ESHAPE, "too large", "strides", {400000000, 400000000});
  refuse(QTN_EINVAL, "ConvTranspose: group is 0", "ConvTranspose", attrs({{"group", std::int64_t{0}}}), {&x, &w});
  refuse(QTN_ESHAPE, "ConvTranspose: weight wants 3 input channels, x has 2", "ConvTranspose", attrs(), {&x, &other});
  refuse(QTN_ESHAPE, "ConvTranspose: 2 channels do not split into 3 groups", "ConvTranspose",
         attrs({{"group", std::int64_t{3}}}), {&x, &w});
}

void hostile_shapes(void **) {
  const Tensor x = meta({2, 8, 4, 4}), huge = ints({kHuge, 1, 1, 1}), low = ints({1, -1, 1, 1}), two = ints({2, 2}),
               unknown = Tensor::meta(QTN_INT64, {4});
  refuse(QTN_ESHAPE, "Tile: dimensions 2 times 9223372036854775807", "Tile", attrs(), {&x, &huge});
  refuse(QTN_EINVAL, "Tile: axis 1 is repeated -1 times", "Tile", attrs(), {&x, &low});
  refuse(QTN_EINVAL, "Tile: repeats has 2 values, x is 2x8x4x4", "Tile", attrs(), {&x, &two});
  refuse(QTN_EUNSUPPORTED, "Tile: input \"repeats\" must be a constant", "Tile", attrs(), {&x, &unknown});
  refuse(QTN_ESHAPE, "Expand: shapes 2x8x4x4 and 2x2 do not broadcast", "Expand", attrs(), {&x, &two});
  refuse(QTN_EINVAL, "Expand: shape has a dimension of -1", "Expand", attrs(), {&x, &low});
  const auto blocks = [&](qstatus status, const char *text, const char *op, std::int64_t size) {
    refuse(status, text, op, attrs({{"blocksize", size}}), {&x});
  };
  blocks(QTN_EINVAL, "DepthToSpace: blocksize is 0", "DepthToSpace", 0);
  blocks(QTN_ESHAPE, "DepthToSpace: 8 channels are not made of blocks of 4 by 4", "DepthToSpace", 4);
  blocks(QTN_ESHAPE, "DepthToSpace: 8 channels", "DepthToSpace", kHuge);
  blocks(QTN_EINVAL, "SpaceToDepth: blocksize is -9223372036854775808", "SpaceToDepth", kLow);
  blocks(QTN_ESHAPE, "SpaceToDepth: x 2x8x4x4 is not made of blocks of 3 by 3", "SpaceToDepth", 3);
  const Tensor nothing = meta({1, 8, 0, 0});
  refuse(QTN_ESHAPE, "SpaceToDepth: dimensions", "SpaceToDepth", attrs({{"blocksize", kHuge}}), {&nothing});
  refuse(QTN_EINVAL, "DepthToSpace: attribute \"blocksize\" is missing", "DepthToSpace", attrs(), {&x});
  refuse(QTN_EINVAL, "DepthToSpace: mode is \"ABC\"", "DepthToSpace",
         attrs({{"blocksize", std::int64_t{2}}, {"mode", std::string("ABC")}}), {&x});
}

void hostile_reductions(void **) {
  const Tensor x = meta({2, 0, 3}), twice = ints({1, -2}), number = Tensor::scalar(1), axis = ints({3});
  refuse(QTN_EINVAL, "ReduceMax: axis -2 is given twice", "ReduceMax", attrs(), {&x, &twice});
  refuse(QTN_EINVAL, "ReduceSum: axis 3", "ReduceSum", attrs(), {&x, &axis});
  refuse(QTN_ESHAPE, "ArgMax: x 2x0x3 has no elements along axis 1", "ArgMax", attrs({{"axis", std::int64_t{1}}}),
         {&x});
  refuse(QTN_EINVAL, "ArgMin: axis 0", "ArgMin", attrs(), {&number});
  expect_error(QTN_EINVAL, "CumSum: axis 3", [&] {
    const Tensor values = floats({2}, {1, 2});
    run("CumSum", attrs(), {&values, &axis});
  });
}

void operands_must_fit(void **) {
  const Tensor x = meta({2, 3, 4}), row = meta({4}), column = meta({3}), words = ints({1}), wide = meta({5, 2, 3, 4}),
               truth = Tensor::meta(QTN_BOOL, {2, 3, 4});
  refuse(QTN_EDTYPE, "Where: condition is float32, not bool", "Where", attrs(), {&x, &x, &x});
  refuse(QTN_EDTYPE, "Where: inputs are float32 and int64", "Where", attrs(), {&truth, &x, &words});
  refuse(QTN_EDTYPE, "Max: inputs are float32 and int64", "Max", attrs(), {&x, &words});
  refuse(QTN_EDTYPE, "Less: a is bool", "Less", attrs(), {&truth, &truth});
  refuse(QTN_EDTYPE, "Erf: x is int64, not float32 or float64", "Erf", attrs(), {&words});
  refuse(QTN_EDTYPE, "Pow: x is bool", "Pow", attrs(), {&truth, &x});
  refuse(QTN_EINVAL, "Gelu: approximate is \"fast\"", "Gelu", attrs({{"approximate", std::string("fast")}}), {&x});
  refuse(QTN_ESHAPE, "LayerNormalization: scale 5x2x3x4 does not broadcast to x 2x3x4", "LayerNormalization", attrs(),
         {&x, &wide});
  refuse(QTN_EINVAL, "LayerNormalization: stash_type is 7, which is no type of floats", "LayerNormalization",
         attrs({{"stash_type", std::int64_t{7}}}), {&x, &row});
  refuse(QTN_EUNSUPPORTED, "LayerNormalization: stash_type is 16, only 1 (float32) is supported for Mean",
         "LayerNormalization", attrs({{"stash_type", std::int64_t{16}}}), {&x, &row}, 2);
  refuse(QTN_ESHAPE, "InstanceNormalization: B is 4, x 2x3x4 has 3 channels", "InstanceNormalization", attrs(),
         {&x, &column, &row});
}

void hostile_resizes(void **) {
  const Tensor x = meta({1, 1, 4, 4}), sizes = ints({1, 1, kHuge, 4});
  const auto scaled = [&](qstatus status, const char *text, float scale, const Attrs &a) {
    const Tensor scales = floats({4}, {1, 1, scale, 1});
    refuse(status, text, "Resize", a, {&x, nullptr, &scales});
  };
  for (const float scale : {0.0f, -1.0f, 1e30f, std::numeric_limits<float>::quiet_NaN()})
    scaled(QTN_EINVAL, "Resize: a scale is", scale, attrs());
  scaled(QTN_EINVAL, "mode \"area\" is unknown", 2, attrs({{"mode", std::string("area")}}));
  scaled(QTN_EINVAL, "antialias goes with mode linear or cubic", 2, attrs({{"antialias", std::int64_t{1}}}));
  scaled(QTN_EINVAL, "nearest_mode \"up\" is unknown", 2, attrs({{"nearest_mode", std::string("up")}}));
  scaled(QTN_ESHAPE, "roi must have 8 values, it is absent", 2,
         attrs({{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}));
  refuse(QTN_EINVAL, "Resize: a size is", "Resize", attrs(), {&x, nullptr, nullptr, &sizes});
  refuse(QTN_EINVAL, "exactly one of scales and sizes", "Resize", attrs(), {&x});
  const Tensor fine = ints({1, 1, 8, 8});
  refuse(QTN_EINVAL, "keep_aspect_ratio_policy \"shrink\"", "Resize",
         attrs({{"keep_aspect_ratio_policy", std::string("shrink")}}), {&x, nullptr, nullptr, &fine});
}

void training_is_for_trainers(void **) {
  const Tensor x = floats({1, 2}, {1, 2}), v = floats({2}, {1, 2});
  expect_error(QTN_EUNSUPPORTED, "BatchNormalization: 3 outputs with training_mode 0",
               [&] { run("BatchNormalization", attrs(), {&x, &v, &v, &v, &v}, 3); });
  const bool on = true;
  const Tensor training = Tensor::from<bool>(QTN_BOOL, {}, std::span(&on, 1)), ratio = Tensor::scalar(0.5f);
  expect_error(QTN_EUNSUPPORTED, "Dropout: training_mode is for trainers", [&] {
    run("Dropout", attrs(), {&x, &ratio, &training});
  });
}

void empty_tensors_run(void **) {
  const Tensor x(QTN_FLOAT32, {0, 3, 4, 4}), w = floats({1, 3, 1, 1}, {1, 1, 1}), none(QTN_FLOAT32, {0, 5}),
                                             columns(QTN_FLOAT32, {5, 2});
  std::fill_n(columns.as<float>(), 10, 1.0f);
  assert_true(run("Conv", attrs(), {&x, &w})[0].shape() == (Shape{0, 1, 4, 4}));
  assert_true(run("Softmax", attrs(), {&x})[0].count() == 0);
  assert_true(run("MaxPool", attrs({{"kernel_shape", Ints{2, 2}}}), {&x})[0].shape() == (Shape{0, 3, 3, 3}));
  assert_true(run("Gemm", attrs(), {&none, &columns})[0].shape() == (Shape{0, 2}));
  assert_true(run("Relu", attrs(), {&none})[0].count() == 0);
  const Tensor inner(QTN_FLOAT32, {2, 0}), outer(QTN_FLOAT32, {0, 2});
  expect_equal(run("MatMul", attrs(), {&inner, &outer})[0], floats({2, 2}, {0, 0, 0, 0}), 0, "empty sum");
}

}  // namespace
}  // namespace qtn

int main() {
  using namespace qtn;
  const CMUnitTest tests[] = {
      cmocka_unit_test(calls_must_fit_the_schema),
      cmocka_unit_test(shapes_must_fit),
      cmocka_unit_test(shapes_must_be_known),
      cmocka_unit_test(hostile_windows),
      cmocka_unit_test(hostile_indices),
      cmocka_unit_test(hostile_resizes),
      cmocka_unit_test(hostile_transposed_windows),
      cmocka_unit_test(hostile_shapes),
      cmocka_unit_test(hostile_reductions),
      cmocka_unit_test(operands_must_fit),
      cmocka_unit_test(training_is_for_trainers),
      cmocka_unit_test(empty_tensors_run),
  };
  return cmocka_run_group_tests_name("ops/errors", tests, nullptr, nullptr);
}
