// SPDX-License-Identifier: Apache-2.0
// One call of a training program: a value forward, its gradients backward.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/scratch.hpp"
#include "ops/op.hpp"

namespace qtn::train {

using SlotId = std::int32_t;
inline constexpr SlotId kNoSlot = -1;

/// A tensor of a program.
struct Slot {
  std::string name;  ///< of the value
  ops::TensorType type;
  SlotId root = kNoSlot;    ///< itself, or the slot whose elements it has under another shape
  Tensor value;             ///< given for parameters and constants; of others when the program is planned
  Tensor gradient;          ///< given for parameters; without data where none is needed
  bool needs_grad = false;  ///< something that is trained comes before it
  bool given = false;       ///< its memory is not the program's
};

/// Which gradients that a step finds may lie where the gradient of its result does, if they have its shape.
enum class Overwrites {
  nothing,
  by_first,  ///< that of grad_inputs[0]: each element is written after everything else that depends on it
  by_all,    ///< each, and is left as it is: they are equal
};

class Step {
 public:
  virtual ~Step() = default;

  std::string name;  ///< of the node
  std::vector<SlotId> reads, writes;
  std::vector<SlotId> keeps;        ///< what of these backward() reads
  std::vector<SlotId> grad_inputs;  ///< whose gradients backward() finds; one that stands twice gets the sum
  Overwrites overwrites = Overwrites::nothing;
  bool can_add = false;           ///< that of grad_inputs[0] to what is in dx[0]
  bool adds = false;              ///< backward() is to do so
  bool hides_not_finite = false;  ///< forward() rounded something that is not finite, which cannot be seen any more

  /// Called once, when every slot has its tensors.
  virtual void bind(std::span<const Slot> slots) = 0;

  virtual void forward(Scratch &scratch) = 0;

  /// Writes the gradient of grad_inputs[i] into dx[i], over what was there; those without data need none.
  virtual void backward(std::span<const Tensor> dx, Scratch &scratch) = 0;
};

using StepPtr = std::unique_ptr<Step>;

}  // namespace qtn::train
