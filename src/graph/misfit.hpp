// SPDX-License-Identifier: Apache-2.0
// Why a node has no form on integers, in the sentences that are the same before quantization and after it.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace qtn::graph {

inline constexpr const char *kNoIntegerForm = "the operator has no integer form";
inline constexpr const char *kComputedWeights = "its weights are not a constant";
inline constexpr const char *kEmptyWeights = "its weights are empty";

inline std::string weights_have_rank(std::size_t rank) { return cat("its weights have ", rank, " dimensions"); }

inline std::string sums_are_deep(std::int64_t depth, std::int64_t most) {
  return cat("an output sums ", depth, " products, of which integers take ", most);
}

inline std::string constant_is_long(std::int64_t count) {
  return cat("a constant operand has ", count, " values, and a table takes one");
}

inline std::string combines(std::size_t activations) { return cat("it combines ", activations, " activations"); }

}  // namespace qtn::graph
