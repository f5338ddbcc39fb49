// SPDX-License-Identifier: Apache-2.0
// What convolutions take whose filters are few: kernels compute so many outputs in the time of one.
#pragma once

#include <cstdint>

namespace qtn::runtime {

/// Outputs of a vector, or of two, in every kernel: half a panel with AVX-512, a whole one elsewhere.
inline constexpr std::int64_t kLanes = 16;

/// Vectors that so many outputs take.
constexpr std::int64_t vectors_of(std::int64_t outputs) { return (outputs + kLanes - 1) / kLanes; }

}  // namespace qtn::runtime
