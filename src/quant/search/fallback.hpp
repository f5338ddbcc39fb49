// SPDX-License-Identifier: Apache-2.0
// What becomes of layers that lose too much with activations of 8 bits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quant/prepare.hpp"
#include "quant/samples.hpp"

namespace qtn::quant {

/// A calibrated model in which the nodes of these names fall back.
using FallBack = std::function<PreparedModel(const std::vector<std::string> &nodes)>;

/// They stay in float. `prepared` (calibrated) stays with the caller.
FallBack to_float(const PreparedModel &prepared);

/// Activations that they read or make become int16, and with them all that share these grids. The first call
/// calibrates on every sample once more, with the same kinds of observers.
FallBack to_int16(const PreparedModel &prepared, const Samples &samples);

}  // namespace qtn::quant
