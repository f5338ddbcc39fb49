// SPDX-License-Identifier: Apache-2.0
#include "ops/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", 0), call.in(0)->rank(), "Gather");
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &indices = *call.in(1);
  require_dtype("Gather", "indices", indices, {QTN_INT64, QTN_INT32});
  const std::size_t axis = axis_of(call);
  Shape shape = x.shape();
  shape.erase(axis);
  for (std::size_t i = 0; i < indices.rank(); ++i) shape.insert(axis + i, indices.dim(i));
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &indices = *call.in(1), &y = outputs[0];
  const std::size_t axis = axis_of(call);
  // One slab of y for each index: what is left of y without the axes that the indices brought.
  Shape shape = x.shape(), x_strides = x.strides(), y_strides = y.strides();
  shape.erase(axis);
  x_strides.erase(axis);
  for (std::size_t i = 0; i < indices.rank(); ++i) y_strides.erase(axis);

  std::int64_t at = 0;
  for (std::int64_t index : int_values(indices, "indices")) {
    if (index < -x.dim(axis) || index >= x.dim(axis))
      fail(QTN_EINVAL, "Gather: index ", index, " is outside dimension ", axis, " of x ", to_string(x.shape()));
    if (index < 0) index += x.dim(axis);
    std::ptrdiff_t offset = 0;
    std::int64_t rest = at++;
    for (std::size_t i = indices.rank(); i-- > 0;) {
      offset += rest % indices.dim(i) * y.strides()[axis + i];
      rest /= indices.dim(i);
    }
    copy_elements(y.view(shape, y_strides, offset), x.view(shape, x_strides, index * x.strides()[axis]));
  }
}

}  // namespace

const OpDef kGather{.name = "Gather",
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .moves = always_moves};

}  // namespace qtn::ops
