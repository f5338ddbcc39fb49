// SPDX-License-Identifier: Apache-2.0
#include "ops/common/contiguous.hpp"
#include "ops/common/indices.hpp"
#include "ops/common/scatter.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"reduction", AttrSpec::kString}};
constexpr const char *kName = "ScatterElements";

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", 0), call.in(0)->rank(), kName);
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &indices = *call.in(1), &updates = *call.in(2);
  check_scatter(kName, call);
  const std::size_t axis = axis_of(call);
  bool fits = x.rank() == indices.rank() && indices.shape() == updates.shape();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = i == axis || indices.dim(i) <= x.dim(i);
  if (!fits)
    fail(QTN_ESHAPE, kName, ": updates ", to_string(updates.shape()), " at indices ", to_string(indices.shape()),
         " do not lie in x ", to_string(x.shape()), " but for axis ", axis);
  return {{x.dtype(), x.shape()}};
}

// One after the other: several may meet in one element.
void run(const Call &call, std::span<Tensor> outputs) {
  constexpr std::int64_t kBlock = 256;
  const Tensor &x = *call.in(0), &indices = *call.in(1);
  const Tensor updates = call.in(2)->to_contiguous();
  const std::size_t axis = axis_of(call);
  const Tensor places =
      indices.dtype() == QTN_INT64 ? indices.to_contiguous() : Tensor::from_ints(int_values(indices, kName));
  const Shape dims = indices.shape(), strides = contiguous_strides(x.shape());
  const std::int64_t length = dims.back(), step = strides[axis], next = axis + 1 == dims.size() ? 0 : 1;
  through_contiguous(outputs[0], [&](const Tensor &y) {
    copy_elements(y, x);
    const Scattering scattering(call, y, updates);
    for (std::int64_t from = 0; from < indices.count(); from += length) {
      const auto *index = places.as<const std::int64_t>() + from;
      std::int64_t at = 0, rest = from / length;
      for (std::size_t i = dims.size() - 1; i-- > 0; rest /= dims[i])
        if (i != axis) at += rest % dims[i] * strides[i];
      const auto offset = [&](std::int64_t i) {
        return at + index_within(kName, index[i], x.shape(), axis) * step + i * next;
      };
      if (next == 1 && are_same(index, length)) {
        scattering.row(offset(0), from, length);
        continue;
      }
      std::int64_t offsets[kBlock];
      for (std::int64_t first = 0; first < length; first += kBlock) {
        const std::int64_t count = std::min(kBlock, length - first);
        for (std::int64_t i = 0; i < count; ++i) offsets[i] = offset(first + i);
        scattering.elements({offsets, static_cast<std::size_t>(count)}, from + first);
      }
    }
  });
}

}  // namespace

const OpDef kScatterElements{.name = kName,
                             .min_inputs = 3,
                             .max_inputs = 3,
                             .max_outputs = 1,
                             .attrs = kAttrs,
                             .infer = infer,
                             .run = run,
                             .moves = scatter_moves,
                             .moved = {0, 2, 2}};

}  // namespace qtn::ops
