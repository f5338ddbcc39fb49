// SPDX-License-Identifier: Apache-2.0
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
  const Tensor &x = *call.in(0), &indices = *call.in(1);
  const Tensor updates = call.in(2)->to_contiguous();
  const std::size_t axis = axis_of(call);
  const std::vector<std::int64_t> places = indices_within(kName, indices, x.shape(), axis);
  const Shape dims = indices.shape(), strides = contiguous_strides(x.shape());
  const std::int64_t length = dims.back(), rows = length == 0 ? 0 : indices.count() / length;
  const bool along = axis + 1 == dims.size();
  through_contiguous(outputs[0], [&](const Tensor &y) {
    copy_elements(y, x);
    scatter_into(call, y, updates, [&](auto *to, const auto *from, auto &&f) {
      for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t at = 0, rest = row;
        for (std::size_t i = dims.size() - 1; i-- > 0; rest /= dims[i])
          if (i != axis) at += rest % dims[i] * strides[i];
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t k = row * length + i;
          auto &element = to[at + places[static_cast<std::size_t>(k)] * strides[axis] + (along ? 0 : i)];
          element = f(element, from[k]);
        }
      }
    });
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
