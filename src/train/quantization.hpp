// SPDX-License-Identifier: Apache-2.0
// Quantization while they are being trained: they follow what is seen, step by step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quant/prepare.hpp"
#include "train/fake_quantize.hpp"

namespace qtn::train {

/// Of the activations that one group of a placement makes. Its range is a moving average, as PyTorch's
/// MovingAverageMinMaxObserver has it; scale and zero point follow by the rule of the configuration.
class ActivationGrid {
 public:
  /// `given`: stays as it is.
  ActivationGrid(std::string name, const quant::ObserverSettings &settings, const QuantizerPtr &given);

  const std::string &name() const { return name_; }
  bool fixed() const { return fixed_; }

  /// Whether there is a grid yet: nothing is rounded before.
  bool known() const { return next_.seen; }

  /// Takes an extent in; it counts from now on, and stays when the step is committed. What shares the grid is one
  /// extent, however many tensors it comes in: a mean of theirs would cut off the widest.
  void observe(float min, float max);

  void commit() {
    now_ = next_;
    extent_.reset();
  }
  void revert() {
    next_ = now_;
    extent_.reset();
  }

  /// Valid until the grid changes. Values are rounded as ONNX's QuantizeLinear does, which is what runs in the end.
  Grids view() const { return {{&next_.scale, 1}, {&next_.zero, 1}, lo_, hi_, Rounding::division}; }

  QuantizerPtr quantizer() const;

  /// What a checkpoint keeps.
  struct Range {
    bool seen = false;
    float min = 0, max = 0;
    float scale = 1;
    std::int32_t zero = 0;
    bool operator==(const Range &) const = default;
  };
  void begin_with(const Quantizer &grid);  ///< its whole range counts as seen
  const Range &range() const { return now_; }
  void restore(const Range &range) { now_ = next_ = range; }

 private:
  void choose();

  std::string name_;
  quant::ObserverSettings settings_;
  bool fixed_ = false;
  std::int32_t lo_, hi_;
  Range now_, next_;
  std::optional<std::pair<float, float>> extent_;  // of this step
};

/// The weights of a node: a grid for each output channel or for all, over the extent that they have at each step.
struct WeightGrid {
  quant::ObserverSettings settings;
  std::optional<std::size_t> norm;  ///< the node of the normalization that is folded into the weights
  std::size_t input;                ///< the grid of what they are multiplied with
};

/// What quantization adds to a network.
struct Quantization {
  explicit Quantization(const quant::Prepared &prepared);

  quant::Config config;
  std::vector<ActivationGrid> activations;              ///< one for each group of the placement
  std::map<graph::ValueId, std::size_t> activation_of;  ///< values of the training graph that are rounded when made
  std::map<std::size_t, WeightGrid> weights;            ///< nodes of the training graph whose weights are rounded
  /// Constants that nodes of the training graph move onto a grid: node and input, and the grid.
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> constants;
};

}  // namespace qtn::train
