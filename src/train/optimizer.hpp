// SPDX-License-Identifier: Apache-2.0
// Optimizers: how parameters follow their gradients, by torch.optim's formulas in float32. A new kind is one file and
// one row in optimizer.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attrs.hpp"
#include "train/parameter.hpp"

namespace qtn::train {

inline constexpr AttrSpec kOptimizerOptions[] = {
    {"optimizer", AttrSpec::kString},   {"momentum", AttrSpec::kFloat},  {"nesterov", AttrSpec::kInt},
    {"weight_decay", AttrSpec::kFloat}, {"beta1", AttrSpec::kFloat},     {"beta2", AttrSpec::kFloat},
    {"epsilon", AttrSpec::kFloat},      {"clip_norm", AttrSpec::kFloat}, {"clip_value", AttrSpec::kFloat},
};

/// What every kind is told.
struct OptimizerSettings {
  double weight_decay = 0;
  double clip_norm = 0, clip_value = 0;  ///< 0: gradients are not clipped
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer &) = delete;
  Optimizer &operator=(const Optimizer &) = delete;

  /// Clips the gradients, by value and then by norm, where that was asked for, and moves the values. Allocates nothing.
  void step(double rate);

  /// Calls f for each tensor that later steps depend on, in a fixed order: "step" (int64, how many there were), then
  /// "<parameter>.<torch's name>", float32 of the parameter's shape. Their elements may be written.
  void for_each_state(const std::function<void(const std::string &name, const Tensor &state)> &f) const;

 protected:
  /// `state_names`: the tensors kept for each parameter; they begin as zeros.
  Optimizer(const OptimizerSettings &settings, std::span<const Parameter> parameters,
            std::vector<std::string_view> state_names);

  /// Some elements of one parameter.
  struct Piece {
    std::size_t count;
    float *value;
    const float *gradient;
    float *state[2];  ///< in the order of their names
    double rate, weight_decay;
    std::int64_t step;  ///< 1 for the first
  };

 private:
  virtual void move(const Piece &piece) const = 0;

  struct Block {
    std::size_t parameter, begin, end;
  };

  OptimizerSettings settings_;
  std::span<const Parameter> parameters_;
  std::vector<std::string_view> state_names_;
  std::vector<Tensor> states_;  ///< those of the first parameter first
  std::vector<Block> blocks_;   ///< of all parameters, so that small ones do not keep threads waiting
  Tensor steps_;
};

/// An optimizer of the kind that "optimizer" names, for parameters that stay where they are and whose settings may
/// change between steps; "sgd" without it. Options of other parts of a trainer are passed over. Throws
/// QTN_EINVAL on an unknown kind, an option of another kind, or a value out of range.
///
/// every kind   "weight_decay" (default 0; adamw: 0.01), "clip_norm", "clip_value" (default: no clipping)
/// sgd          "momentum" in [0, 1) (default 0), "nesterov" (0 or 1)
/// adam, adamw  "beta1" (0.9), "beta2" (0.999) in [0, 1), "epsilon" (1e-8); adamw shrinks weights by rate times decay,
///              where the others add decay times the weight to the gradient
std::unique_ptr<Optimizer> make_optimizer(const Attrs &attrs, std::span<const Parameter> parameters);

}  // namespace qtn::train
