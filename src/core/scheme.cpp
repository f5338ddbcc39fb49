// SPDX-License-Identifier: Apache-2.0
#include "core/scheme.hpp"

#include <array>

namespace qtn {
namespace {

// At its number each.
constexpr std::array<const char *, 7> kNames = {"per_tensor_affine",
                                                "per_tensor_symmetric",
                                                "per_channel_affine",
                                                "per_channel_symmetric",
                                                "per_block_affine",
                                                "per_block_symmetric",
                                                "per_channel_affine_float_qparams"};

}  // namespace

const char *scheme_name(qscheme scheme) {
  const auto number = static_cast<std::size_t>(scheme);
  return number < kNames.size() ? kNames[number] : "?";
}

std::optional<qscheme> parse_scheme(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<qscheme>(i);
  return std::nullopt;
}

}  // namespace qtn
