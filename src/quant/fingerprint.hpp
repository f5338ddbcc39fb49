// SPDX-License-Identifier: Apache-2.0
// A number that tells models apart: equal for equal graphs on every machine, different for others but by accident.
#pragma once

#include <cstdint>

#include "quant/placement.hpp"

namespace qtn::quant {

/// The fingerprint of nodes, names of values and constants, to the bit.
std::uint64_t fingerprint(const graph::Graph &g);

/// The fingerprint of the settings that each node and each group of tensors has got.
std::uint64_t fingerprint(const Placement &placement);

}  // namespace qtn::quant
