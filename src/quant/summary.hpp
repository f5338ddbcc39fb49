// SPDX-License-Identifier: Apache-2.0
// What a quantization came to, in words: the same in every language and in the command.
#pragma once

#include <string>
#include <string_view>

#include "quant/quantization_report.hpp"

namespace qtn::quant {

/// Whether outputs are so far from those in float that a network seldom does what it did.
bool is_far(const QuantizationReport &report);

/// What can still be done where they are; "" where nothing need be, or a target has said what is wanted.
std::string next_step(const QuantizationReport &report);

/// The JSON of a report in sentences, a line each. Throws QTN_EFORMAT for text that is not one.
std::string summary_of(std::string_view report);

}  // namespace qtn::quant
