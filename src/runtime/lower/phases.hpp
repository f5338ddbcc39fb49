// SPDX-License-Identifier: Apache-2.0
// A transposed convolution as convolutions: outputs that are a stride apart read the same taps, at distances of one.
#pragma once

#include <optional>
#include <span>

#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// Every stride-th output along each axis, in the order of a window over images.
struct Phase {
  ops::Window window;                             ///< over x, of stride 1
  ops::Window::Dims skipped;                      ///< outputs of the window before the first that counts
  ops::Window::Dims count;                        ///< outputs that count
  ops::Window::Dims at;                           ///< where the first of them is in y
  std::array<std::vector<std::int64_t>, 3> taps;  ///< of the weight along each axis, as the window reads them
  std::size_t residue;                            ///< phases of one node with the same number have the same taps
};

/// So many may be steps of their own. They come of strides of 4 along three axes.
inline constexpr std::size_t kMostPhases = 64;

/// The phases of the window over images of a ConvTranspose, from y to x. nullopt where there are more than one product
/// may have.
std::optional<std::vector<Phase>> phases_of(const ops::Window &transposed);

/// Whether one product for all phases, each with zeros for the taps of others, is less work than one for each: where
/// filters are few, since kernels compute many outputs at once. Where phases are too many for steps of their own, whether
/// such a product is not much more work.
bool share_product(const ops::Window &transposed, std::span<const Phase> phases, std::int64_t groups,
                   std::int64_t filters);
/// The window over the taps of all.
Phase joined(std::span<const Phase> phases);

/// The constants of the node for these phases, one after the other, as the window of `all` reads them: of a phase alone
/// its own. A phase without taps has zeros.
LinearWeights phase_weights(const graph::Graph &g, const graph::Node &node, std::span<const Phase> phases,
                            const Phase &all);

/// The same of floats; `bias` may be without data.
RealWeights real_phase_weights(const Tensor &weight, const Tensor &bias, std::int64_t groups,
                               std::span<const Phase> phases, const Phase &all);

}  // namespace qtn::runtime
