// SPDX-License-Identifier: Apache-2.0
// Names of the quantization schemes, as texts and files have them.
#pragma once

#include <optional>
#include <string_view>

#include "qtensor/types.h"

namespace qtn {

/// "per_tensor_affine" ...; "?" for a number that is no scheme.
const char *scheme_name(qscheme scheme);

std::optional<qscheme> parse_scheme(std::string_view name);

}  // namespace qtn
