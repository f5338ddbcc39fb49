// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "ops/common/contiguous.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/indices.hpp"
#include "ops/common/reshaping.hpp"
#include "ops/common/unpacked.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};
constexpr const char *kName = "GatherElements";

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", 0), call.in(0)->rank(), kName);
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &indices = *call.in(1);
  require_indices(kName, indices);
  const std::size_t axis = axis_of(call);
  bool fits = x.rank() == indices.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = i == axis || indices.dim(i) <= x.dim(i);
  if (!fits)
    fail(QTN_ESHAPE, kName, ": indices ", to_string(indices.shape()), " do not lie in x ", to_string(x.shape()),
         " but for axis ", axis);
  return {{x.dtype(), indices.shape()}};
}

/// Contiguous indices.
template <class Index>
void gather(const Tensor &x, const Tensor &indices, std::size_t axis, const Tensor &y) {
  for (const Index index : std::span(indices.as<const Index>(), static_cast<std::size_t>(indices.count())))
    if (index < -x.dim(axis) || index >= x.dim(axis)) index_within(kName, index, x.shape(), axis);  // throws
  const std::int64_t step = x.strides()[axis], dim = x.dim(axis);
  Shape line = x.strides();  // of x where the index is 0
  line[axis] = 0;
  dispatch_width(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_rows<3>(y.shape(), {y.strides(), indices.strides(), line},
                [&](const auto &at, const auto &steps, std::int64_t length) {
                  T *to = y.as<T>() + at[0];
                  const Index *index = indices.as<const Index>() + at[1];
                  const T *from = x.as<const T>() + at[2];
                  for (std::int64_t i = 0; i < length; ++i) {
                    const std::int64_t place = index[i * steps[1]];
                    to[i * steps[0]] = from[i * steps[2] + (place < 0 ? place + dim : place) * step];
                  }
                });
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), indices = call.in(1)->to_contiguous();
  indices.dtype() == QTN_INT32 ? gather<std::int32_t>(x, indices, axis_of(call), outputs[0])
                               : gather<std::int64_t>(x, indices, axis_of(call), outputs[0]);
}

}  // namespace

const OpDef kGatherElements{.name = kName,
                            .min_inputs = 2,
                            .max_inputs = 2,
                            .max_outputs = 1,
                            .attrs = kAttrs,
                            .any_type = true,
                            .infer = infer,
                            .run = through_unpacked<run>,
                            .moves = always_moves};

}  // namespace qtn::ops
