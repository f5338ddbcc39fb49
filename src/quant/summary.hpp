// SPDX-License-Identifier: Apache-2.0
// What a quantization came to, in words: the same in every language and in the command.
#pragma once

#include <string>
#include <string_view>

namespace qtn::quant {

/// The JSON of a report in sentences, a line each. Throws QTN_EFORMAT for text that is not one.
std::string summary_of(std::string_view report);

}  // namespace qtn::quant
