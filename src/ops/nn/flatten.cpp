// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::int64_t axis = call.attrs.get_int("axis", 1);
  // The axis is a place between dimensions, so it may also be the rank itself.
  const std::size_t at =
      axis == static_cast<std::int64_t>(x.rank()) ? x.rank() : normalize_axis(axis, x.rank(), "Flatten");
  return {{x.dtype(), {element_count(x.shape(), 0, at), element_count(x.shape(), at, x.rank())}}};
}

}  // namespace

const OpDef kFlatten{.name = "Flatten",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = kAttrs,
                     .any_type = true,
                     .infer = infer,
                     .run = run_copy,
                     .moves = always_moves,
                     .backward = backward_copy,
                     .keeps_order = true};

}  // namespace qtn::ops
