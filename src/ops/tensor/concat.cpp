// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};

std::size_t axis_of(const Call &call) {
  if (!call.attrs.has("axis")) fail(QTN_EINVAL, "Concat: attribute \"axis\" is missing");
  return normalize_axis(call.attrs.get_int("axis", 0), call.in(0)->rank(), "Concat");
}

Types infer(const Call &call) {
  const Tensor &first = *call.in(0);
  const std::size_t axis = axis_of(call);
  Shape shape = first.shape();
  for (const Tensor *x : call.inputs.subspan(1)) {
    require_same_dtype("Concat", first, *x);
    Shape other = x->shape();
    const bool one_rank = other.size() == shape.size();
    const std::int64_t length = one_rank ? other[axis] : 0;
    if (one_rank) other[axis] = first.dim(axis);
    if (!(other == first.shape()))
      fail(QTN_ESHAPE, "Concat: shapes ", to_string(first.shape()), " and ", to_string(x->shape()),
           " differ beside axis ", axis);
    shape[axis] = add_dims("Concat", shape[axis], length);
  }
  return {{first.dtype(), shape}};
}

/// Calls f(i, the part of y that input i is) for all inputs.
template <class F>
void for_parts(const Call &call, const Tensor &y, F &&f) {
  const std::size_t axis = axis_of(call);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor &x = *call.in(i);
    f(i, y.view(x.shape(), y.strides(), at * y.strides()[axis]));
    at += x.dim(axis);
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  for_parts(call, outputs[0], [&](std::size_t i, const Tensor &part) { copy_elements(part, *call.in(i)); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  for_parts(run.call, run.dy[0], [&](std::size_t i, const Tensor &part) {
    if (dx[i].has_data()) copy_elements(dx[i], part);
  });
}

void upgrade(OldNode &node) {
  if (node.opset < 4 && !node.attrs.has("axis")) node.attrs.set("axis", std::int64_t{1});
}

}  // namespace

const OpDef kConcat{.name = "Concat",
                    .min_inputs = 1,
                    .max_inputs = kVariadic,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .any_type = true,
                    .infer = infer,
                    .run = run,
                    .moves = always_moves,
                    .moved = {0, kVariadic},
                    .backward = backward,
                    .joins = true,
                    .upgrade = upgrade};

}  // namespace qtn::ops
