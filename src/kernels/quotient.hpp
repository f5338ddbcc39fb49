// SPDX-License-Identifier: Apache-2.0
// x / scale, rounded to integers of a byte, without a division: one takes as long as all else that is done to its vector.
//
// x * (1 / scale) differs from x / scale, both rounded to float32, by less than 2^-22 of it. Up to 512, beyond which all
// that a byte holds is exceeded, that is less than 2^-13: both round to the same integer unless the product lies that
// near to the middle between two, where a vector is divided after all.
#pragma once

#include <limits>

namespace qtn::kernels {
namespace {

/// Products as far as this from the integer they round to are divided; and NaN is.
constexpr float kSureWithin = 0.5f - 1.0f / 8192;

/// NaN, with which every vector is divided, for scales with an inverse beyond normal floats.
inline float inverse_of(float scale) {
  constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
  return scale >= kLeast && scale <= kMost ? 1 / scale : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace
}  // namespace qtn::kernels
