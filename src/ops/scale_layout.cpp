// SPDX-License-Identifier: Apache-2.0
#include "ops/scale_layout.hpp"

#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

ScaleLayout by_axis(const char *op, const Tensor &x, const Tensor &scale, std::size_t axis) {
  if (scale.count() != x.dim(axis))
    fail(QTN_ESHAPE, op, ": ", scale.count(), " scales for axis ", axis, " of x ", to_string(x.shape()));
  return {.inner = element_count(x.shape(), axis + 1, x.rank()), .dim = x.dim(axis), .block_step = 1};
}

ScaleLayout by_block(const char *op, const Tensor &x, const Tensor &scale, std::size_t axis, std::int64_t block) {
  Shape wanted = x.shape();
  wanted[axis] = x.dim(axis) / block + (x.dim(axis) % block != 0);
  if (!(scale.shape() == wanted))
    fail(QTN_ESHAPE, op, ": scale is ", to_string(scale.shape()), ", blocks of ", block, " along axis ", axis, " of x ",
         to_string(x.shape()), " want ", to_string(wanted));
  const std::int64_t inner = element_count(x.shape(), axis + 1, x.rank());
  return {inner, x.dim(axis), block, wanted[axis] * inner, inner, 1};
}

}  // namespace

ScaleLayout scale_layout(const char *op, const Call &call) {
  const Tensor &x = *call.in(0), &scale = *call.in(1), *zero = call.in(2);
  require_float(op, "scale", &scale);
  const bool one_zero = zero && zero->count() == 1 && scale.count() == 1;
  if (zero && !one_zero && !(zero->shape() == scale.shape()))
    fail(QTN_ESHAPE, op, ": zero point is ", to_string(zero->shape()), ", scale ", to_string(scale.shape()));
  const std::int64_t block = call.attrs.get_int("block_size", 0);
  if (block < 0) fail(QTN_EINVAL, op, ": block_size is ", block);
  if (block == 0 && scale.count() == 1) return {.inner = std::max<std::int64_t>(1, x.count())};
  const std::size_t axis = normalize_axis(call.attrs.get_int("axis", 1), x.rank(), op);
  if (block > 0) return by_block(op, x, scale, axis, block);
  if (scale.rank() != 1)
    fail(QTN_ESHAPE, op, ": scale is ", to_string(scale.shape()),
         ", which without block_size must be one number or a list");
  return by_axis(op, x, scale, axis);
}

}  // namespace qtn::ops
