// SPDX-License-Identifier: Apache-2.0
#include "ops/reshaping.hpp"

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

void run(const Call &call, std::span<Tensor> outputs) {
  const std::size_t axis = axis_of(call);
  const Tensor &y = outputs[0];
  std::int64_t at = 0;
  for (const Tensor *x : call.inputs) {
    copy_elements(y.view(x->shape(), y.strides(), at * y.strides()[axis]), *x);
    at += x->dim(axis);
  }
}

}  // namespace

const OpDef kConcat{.name = "Concat",
                    .min_inputs = 1,
                    .max_inputs = kVariadic,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .moves = always_moves,
                    .moved = {0, kVariadic}};

}  // namespace qtn::ops
