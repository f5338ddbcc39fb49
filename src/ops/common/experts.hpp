// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts, MoE and QMoE: each expert is a network of two or three layers. Every row of x passes through the k
// experts that its router prefers, and what they make of it is added up.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "ops/op.hpp"

namespace qtn::ops {

/// The layer of all experts: matrices [outputs][inputs], and a bias for each expert, or none.
struct ExpertLayer {
  std::int64_t outputs, inputs;
  const Tensor *bias;
  std::int64_t memory;  ///< floats for each row that rows() returns, of which there are at most kMostExpertRows

  /// `count` rows of the matrix of an expert from `first` on, without gaps. It must not throw.
  std::function<const float *(std::int64_t expert, std::int64_t first, std::int64_t count, float *memory)> rows;
};

inline constexpr std::int64_t kMostExpertRows = 64;

/// Where the inputs of the layers are: that of layer i, counted from 0, is first + i * step.
struct ExpertInputs {
  std::size_t weights, bias, step;

  const Tensor *weights_of(const Call &call, std::size_t layer) const { return call.in(weights + layer * step); }
  const Tensor *bias_of(const Call &call, std::size_t layer) const { return call.in(bias + layer * step); }
};

/// What ONNX Runtime calls an input of a layer: fc1_experts_bias.
std::string of_layer(std::size_t layer, const char *what);

/// The attributes and sizes of a call. Throws what infer() throws.
struct ExpertForm {
  /// `per_element`: weights of each layer in an element of their tensor.
  ExpertForm(const char *name, const Call &call, const ExpertInputs &inputs,
             const std::array<std::int64_t, 3> &per_element);

  std::int64_t outputs(std::size_t layer) const { return layer == 0 ? wide : layer == 1 ? hidden : inner; }
  std::int64_t inputs(std::size_t layer) const { return layer == 1 ? inner : hidden; }

  enum class Activation { relu, gelu, silu, identity, swiglu };
  Activation activation;
  std::int64_t
      fusion;  ///< of the gate and what it meets, in the first layer: 0: there are three, 1: in turns, 2: in parts
  std::int64_t k, rows, experts = 0, hidden, inner, wide;
  bool has_third;
  float alpha, beta, limit;
};

/// About how many products each element of the result takes.
double work_of_experts(const Call &call, const Tensor &first, const Tensor &second);

/// How a row chooses its experts: those of the largest numbers, the last of equal ones first.
struct Routing {
  const float *chosen_by;  ///< [rows][experts]
  const float *weights;    ///< [rows][experts]; nullptr: the softmax of the chosen ones' numbers
  bool normalizes;         ///< weights of a row, so that their sum is 1
};

/// y = the sum over the experts of a row that have a weight above 0.
void run_experts(const ExpertForm &form, const Routing &routing, const Tensor &x,
                 const std::array<ExpertLayer, 3> &layers, const Tensor &y);

}  // namespace qtn::ops
