// SPDX-License-Identifier: Apache-2.0
// The kinds of steps.
#pragma once

#include <limits>

#include "graph/graph.hpp"
#include "kernels/fake/fake.hpp"
#include "train/network.hpp"
#include "train/step.hpp"
#include "train/steps/fold.hpp"

namespace qtn::train {

/// Inputs of a node as slots; kNoSlot: absent.
using SlotIds = std::vector<SlotId>;

/// Any operator, by its own definition.
StepPtr make_operator(const graph::Node &node, SlotIds inputs, SlotIds outputs);

/// Conv, in batches: inputs x, weight and perhaps bias.
StepPtr make_convolution(const graph::Node &node, SlotIds inputs, SlotId y);

/// What is done to a result in the same pass.
struct Epilogue {
  float lo = -std::numeric_limits<float>::infinity(), hi = std::numeric_limits<float>::infinity();
  ActivationGrid *grid = nullptr;
};

/// `inputs`: x, scale, offset, and with a fold the bias of the node before, or kNoSlot. By the statistics of the batch,
/// which `statistics` takes up as those of its use `index`, or by the running ones.
StepPtr make_batch_norm(const graph::Node &node, SlotIds inputs, SlotId y, Statistics &statistics, std::size_t index,
                        std::shared_ptr<Fold> fold, const Epilogue &epilogue, const Switches &switches);

/// y = x clamped and on its grid, which takes it in before.
StepPtr make_fake_quantize(SlotId x, SlotId y, const Epilogue &epilogue, const Switches &switches);

/// The same on a grid that is learned by `parameters`, in the order of its parts.
StepPtr make_learned_quantize(SlotId x, SlotId y, ActivationGrid &grid, SlotIds parameters, const Switches &switches);
kernels::FakeGrids kernel_grid(const Grids &grids);

/// y = w, times the factors of a fold, on its grid, which `learned` may be parameters of. `scale`: that of the fold.
/// `input`: the grid of the other factor, from which with that of the weights the units follow.
StepPtr make_weights(const graph::Node &node, SlotId w, SlotId y, WeightGrid &grid, SlotIds learned,
                     const ActivationGrid &input, std::shared_ptr<BiasUnits> units, std::shared_ptr<Fold> fold,
                     SlotId scale, const Switches &switches);

/// y = the bias in units that the step of the weights has found before.
StepPtr make_bias(const graph::Node &node, SlotId bias, SlotId y, std::shared_ptr<const BiasUnits> units);

/// Zeroes elements and scales up the others; which, follows from seed, batch and `stream`.
StepPtr make_dropout(const graph::Node &node, SlotId x, SlotId y, float ratio, std::uint64_t stream,
                     const Switches &switches);

}  // namespace qtn::train
