// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"num_outputs", AttrSpec::kInt}};

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", 0), call.in(0)->rank(), "Split");
}

std::vector<std::int64_t> given_lengths(const Call &call, std::int64_t dim) {
  const std::vector<std::int64_t> lengths = constant_ints("Split", "split", *call.in(1));
  if (lengths.size() != call.output_count)
    fail(QTN_EINVAL, "Split: split has ", lengths.size(), " lengths for ", call.output_count, " outputs");
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) {
    if (length < 0) fail(QTN_EINVAL, "Split: a length is ", length);
    sum = add_dims("Split", sum, length);
  }
  if (sum != dim) fail(QTN_ESHAPE, "Split: lengths sum to ", sum, ", the dimension is ", dim);
  return lengths;
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::size_t axis = axis_of(call);
  const std::int64_t dim = x.dim(axis), count = static_cast<std::int64_t>(call.output_count);
  std::vector<std::int64_t> lengths;
  if (call.in(1)) {
    if (call.attrs.has("num_outputs")) fail(QTN_EINVAL, "Split: both split and num_outputs are given");
    lengths = given_lengths(call, dim);
  } else {
    const std::int64_t stated = call.attrs.get_int("num_outputs", count);
    if (stated != count) fail(QTN_EINVAL, "Split: num_outputs is ", stated, " for ", count, " outputs");
    // Opset 18: the last part is the smaller one. Without num_outputs the node is older, where parts were equal.
    const std::int64_t length = dim / count + (dim % count != 0), last = dim - length * (count - 1);
    if (last < 0 || (last != length && !call.attrs.has("num_outputs")))
      fail(QTN_ESHAPE, "Split: a dimension of ", dim, " does not split into ", count, " parts");
    lengths.assign(call.output_count, length);
    lengths.back() = last;
  }
  Types types;
  for (const std::int64_t length : lengths) {
    types.push_back({x.dtype(), x.shape()});
    types.back().shape[axis] = length;
  }
  return types;
}

/// Calls f(i, the part of x that output i is) for all outputs.
template <class F>
void for_parts(const Call &call, const Tensor &x, std::span<const Tensor> outputs, F &&f) {
  const std::size_t axis = axis_of(call);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    f(i, x.view(outputs[i].shape(), x.strides(), at * x.strides()[axis]));
    at += outputs[i].dim(axis);
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  for_parts(call, *call.in(0), outputs, [&](std::size_t i, const Tensor &part) { copy_elements(outputs[i], part); });
}

void upgrade(OldNode &node) {
  if (node.opset < 13) ints_to_input(node, "split", 1);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  std::fill_n(dx[0].as<float>(), dx[0].count(), 0.0f);
  for_parts(run.call, dx[0], run.outputs, [&](std::size_t i, const Tensor &part) {
    if (run.dy[i].has_data()) copy_elements(part, run.dy[i]);
  });
}

}  // namespace

const OpDef kSplit{.name = "Split",
                   .min_inputs = 1,
                   .max_inputs = 2,
                   .max_outputs = kVariadic,
                   .attrs = kAttrs,
                   .any_type = true,
                   .infer = infer,
                   .run = run,
                   .moves = always_moves,
                   .backward = backward,
                   .shapes_from = {1, 1},
                   .upgrade = upgrade};

}  // namespace qtn::ops
