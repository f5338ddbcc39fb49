// SPDX-License-Identifier: Apache-2.0
// A network lowered for inputs of certain shapes: steps that run forward and backward, in memory planned once.
#pragma once

#include <optional>

#include "base/memory.hpp"
#include "train/network.hpp"
#include "train/step.hpp"

namespace qtn::train {

class Program {
 public:
  /// Throws what graph::infer throws; QTN_EUNSUPPORTED naming a node without a gradient between a parameter and an
  /// output.
  Program(Network &network, std::span<const ops::TensorType> inputs);

  bool fits(std::span<const Tensor *const> inputs) const;

  /// Inputs fit.
  void forward(std::span<const Tensor *const> inputs);
  std::span<const Tensor> outputs() const { return outputs_; }

  /// After forward(), with the gradients of the outputs written: those of the parameters.
  void backward();
  std::span<const Tensor> output_gradients() const { return output_gradients_; }

  /// Whether the last forward run rounded something that is not finite.
  bool hides_not_finite() const;

  /// Runs forward again and names the first tensor that is not finite.
  std::optional<std::string> first_not_finite(std::span<const Tensor *const> inputs);

  /// The same of backward(): the first tensor whose gradient is not finite.
  std::optional<std::string> first_not_finite_gradient();

 private:
  /// Where a step's gradients go.
  struct Delivery {
    std::vector<Tensor> dx;
    std::vector<std::pair<Tensor, Tensor>> sums;  ///< to.first += second, afterwards
    bool any = false;
  };

  struct Leases;

  void plan();
  void lease_values(Leases &leases) const;
  void lease_output_gradients(Leases &leases) const;
  void find_gradients(Leases &leases);
  void lease_gradients(Leases &leases) const;
  void place(Leases &leases);
  void deliver(const Leases &leases);
  /// Inputs and outputs with their slots.
  void connect(const Leases &leases);
  void run_backward(std::size_t step);

  std::vector<Slot> slots_;
  std::vector<StepPtr> steps_;
  std::vector<SlotId> input_slots_, output_slots_;
  std::vector<Delivery> deliveries_;
  std::vector<Tensor> inputs_, outputs_, output_gradients_;
  std::vector<std::pair<Tensor, Tensor>> output_sums_;  ///< of outputs that are one value: to.first += second
  AlignedBuffer arena_;
  Scratch scratch_;
};

}  // namespace qtn::train
