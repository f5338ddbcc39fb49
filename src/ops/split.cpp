// SPDX-License-Identifier: Apache-2.0
#include "ops/reshaping.hpp"

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

void run(const Call &call, std::span<Tensor> outputs) {
  const std::size_t axis = axis_of(call);
  const Tensor &x = *call.in(0);
  std::int64_t at = 0;
  for (const Tensor &y : outputs) {
    copy_elements(y, x.view(y.shape(), x.strides(), at * x.strides()[axis]));
    at += y.dim(axis);
  }
}

void upgrade(OldNode &node) {
  if (node.opset < 13) ints_to_input(node, "split", 1);
}

}  // namespace

const OpDef kSplit{.name = "Split",
                   .min_inputs = 1,
                   .max_inputs = 2,
                   .max_outputs = kVariadic,
                   .attrs = kAttrs,
                   .infer = infer,
                   .run = run,
                   .moves = always_moves,
                   .upgrade = upgrade};

}  // namespace qtn::ops
