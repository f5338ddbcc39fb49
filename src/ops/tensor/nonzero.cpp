// SPDX-License-Identifier: Apache-2.0
#include "ops/common/made.hpp"

namespace qtn::ops {
namespace {

std::vector<Tensor> make(const Call &call) {
  const Tensor x = to_plain(require_constant("NonZero", "x", *call.in(0)).to_contiguous());
  std::vector<std::int64_t> places;
  dispatch(x.dtype(), [&](auto zero) {
    const auto *v = x.as<const decltype(zero)>();
    for (std::int64_t i = 0; i < x.count(); ++i)
      if (v[i] != zero) places.push_back(i);
  });
  const auto count = static_cast<std::int64_t>(places.size());
  Tensor y(QTN_INT64, {static_cast<std::int64_t>(x.rank()), count});
  for (std::size_t axis = x.rank(); axis-- > 0;)
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t &place = places[static_cast<std::size_t>(i)];
      y.as<std::int64_t>()[static_cast<std::int64_t>(axis) * count + i] = place % x.dim(axis);
      place /= x.dim(axis);
    }
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
