// SPDX-License-Identifier: Apache-2.0
// What ordinary convolutions and transposed ones share.
#pragma once

#include "runtime/lower/lowering.hpp"

namespace qtn::runtime {

/// Adds the steps of a convolution from one image to another.
void add_convolution(Lowering &l, SlotId from, SlotId to, const ops::Window &window, const LinearWeights &w,
                     const QuantizedRange &out, const PackCache &cache);
void add_real_convolution(Lowering &l, SlotId from, SlotId to, const ops::Window &window, const RealWeights &w,
                          const PackCache &cache);

/// Vectors of filters that it multiplies for each output, without groups.
double vectors_of_convolution(const ops::Window &window, std::size_t filters);

/// Each channel of a volume for itself, with so few outputs: by the operator, since most of a tile would be empty.
bool is_for_channels_of_volumes(const ops::Window &window, std::int64_t channels, std::int64_t groups, std::int64_t out,
                                std::int64_t few);

/// lower_convolution() of a ConvTranspose.
bool lower_transposed(Lowering &l);

}  // namespace qtn::runtime
