// SPDX-License-Identifier: Apache-2.0
#include <atomic>

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

/// A line of y, and where x has what an index of 0 names for its first element; that of 1 lies `step` elements on.
struct Line {
  void *to;
  const void *index, *from;
  std::int64_t next_to, next_index, next_from;
  std::int64_t length, dim, step;
};

/// False where an index lies outside.
template <class T, class Index>
bool gather(const Line &line) {
  T *to = static_cast<T *>(line.to);
  const Index *index = static_cast<const Index *>(line.index);
  const T *from = static_cast<const T *>(line.from);
  const auto place_of = [dim = line.dim](std::int64_t place) {
    place += place >> 63 & dim;  // no branch, which signs at random would make slow
    return static_cast<std::uint64_t>(place) < static_cast<std::uint64_t>(dim) ? place : -1;
  };
  if (line.next_to == 1 && line.next_index == 1 && line.next_from == 1 && are_same(index, line.length)) {
    const std::int64_t place = place_of(*index);
    if (place >= 0) std::copy_n(from + place * line.step, line.length, to);
    return place >= 0;
  }
  for (std::int64_t i = line.length; i > 0; --i, to += line.next_to, index += line.next_index, from += line.next_from) {
    const std::int64_t place = place_of(*index);
    if (place < 0) return false;
    *to = from[place * line.step];
  }
  return true;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), indices = call.in(1)->to_contiguous(), &y = outputs[0];
  const std::size_t axis = axis_of(call);
  bool (*line)(const Line &) = nullptr;
  dispatch_width(x.dtype(), [&]<class T>(T) {
    line = indices.dtype() == QTN_INT32 ? gather<T, std::int32_t> : gather<T, std::int64_t>;
  });
  Shape strides = x.strides();  // where the index is 0
  strides[axis] = 0;
  std::atomic<bool> inside = x.dim(axis) > 0;
  const auto bytes = [](const Tensor &t, std::int64_t at) {
    return t.as<std::byte>() + at * static_cast<std::int64_t>(dtype_size(t.dtype()));
  };
  if (inside)
    for_rows<3>(y.shape(), {y.strides(), indices.strides(), strides},
                [&](const auto &at, const auto &next, std::int64_t length) {
                  if (!line({bytes(y, at[0]), bytes(indices, at[1]), bytes(x, at[2]), next[0], next[1], next[2], length,
                             x.dim(axis), x.strides()[axis]}))
                    inside = false;
                });
  if (!inside) indices_within(kName, indices, x.shape(), axis);  // throws
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
