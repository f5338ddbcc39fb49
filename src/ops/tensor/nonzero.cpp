// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/common/cast.hpp"
#include "ops/common/made.hpp"

namespace qtn::ops {
namespace {

std::vector<Tensor> make(const Call &call) {
  const Tensor &x = require_constant("NonZero", "x", *call.in(0));
  const Tensor truths(QTN_BOOL, x.shape());
  cast_elements(x, truths, false);
  const auto *truth = truths.as<const std::uint8_t>();
  const std::int64_t count = x.count() - std::count(truth, truth + x.count(), std::uint8_t{0});
  const auto rank = static_cast<std::int64_t>(x.rank());
  Tensor y(QTN_INT64, {rank, count});
  if (rank == 0 || count == 0) return {y};

  // Along the last axis: written for each element, and kept where it is not zero.
  std::vector<std::int64_t> along(static_cast<std::size_t>(count) + 1);
  std::array<std::int64_t, kMaxRank> index{};
  const std::int64_t length = x.shape().back();
  std::int64_t found = 0;
  while (found < count) {
    const std::int64_t before = found;
    for (std::int64_t i = 0; i < length; ++i) {
      along[static_cast<std::size_t>(found)] = i;
      found += *truth++ != 0;
    }
    for (std::size_t axis = 0; axis + 1 < x.rank(); ++axis)
      std::fill_n(y.as<std::int64_t>() + static_cast<std::int64_t>(axis) * count + before, found - before, index[axis]);
    for (std::size_t axis = x.rank() - 1; axis-- > 0;) {
      if (++index[axis] < x.dim(axis)) break;
      index[axis] = 0;
    }
  }
  std::copy_n(along.begin(), count, y.as<std::int64_t>() + (rank - 1) * count);
  return {y};
}

}  // namespace

const OpDef kNonZero{.name = "NonZero",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = {},
                     .any_type = true,
                     .infer = infer_made<make>,
                     .run = run_made<make>,
                     .shapes_from = {0, 1},
                     .make = make,
                     .output_dtype = makes<QTN_INT64>};

}  // namespace qtn::ops
