// SPDX-License-Identifier: Apache-2.0
// Quantization while they are being trained: they follow what is seen, step by step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quant/prepare.hpp"
#include "train/learned_grid.hpp"
#include "train/parameter.hpp"

namespace qtn::train {

/// The grid of the activations that one group of a placement makes. Its range is a moving average, as PyTorch's
/// MovingAverageMinMaxObserver has it; scale and zero point follow by the rule of the configuration.
class ActivationGrid {
 public:
  /// `given`: stays as it is, whatever `learning` says.
  /// `fused`: as PyTorch's FusedMovingAvgObsFakeQuantize.
  ActivationGrid(std::string name, const quant::ObserverSettings &settings, const QuantizerPtr &given,
                 quant::Learning learning = quant::Learning::none, bool fused = false);

  const std::string &name() const { return name_; }
  bool fixed() const { return fixed_; }

  /// Null where it is not learned. The first extent that it takes in, or what calibration has found, is its beginning.
  LearnedGrid *learned() { return learned_ ? &*learned_ : nullptr; }
  const LearnedGrid *learned() const { return learned_ ? &*learned_ : nullptr; }

  /// Whether extents change it.
  bool observes() const { return !fixed_ && !(learned_ && now_.seen); }

  /// Whether there is a grid yet: nothing is rounded before.
  bool known() const { return next_.seen; }

  /// Takes an extent in; it counts from now on, and stays when the step is committed. What shares the grid is one
  /// extent, however many tensors it comes in: a mean of theirs would cut off the widest.
  void observe(float min, float max);

  void commit() {
    now_ = next_;
    extent_.reset();
  }
  void revert();

  /// What is learned is what parameters are now, which others write.
  void follow();

  /// Valid until the grid changes. Values are rounded as ONNX's QuantizeLinear does, which is what runs in the end;
  /// fused ones as PyTorch rounds them.
  Grids view() const {
    return {{&next_.scale, 1}, {&next_.zero, 1}, lo_, hi_, fused_ ? Rounding::reciprocal : Rounding::division};
  }

  QuantizerPtr quantizer() const;

  /// What a checkpoint keeps.
  struct Range {
    bool seen = false;
    float min = 0, max = 0;
    float scale = 1;
    std::int32_t zero = 0;
    bool operator==(const Range &) const = default;
  };
  void begin_with(const Quantizer &grid);  ///< the range that it is over counts as seen
  const Range &range() const { return now_; }
  void restore(const Range &range) { now_ = next_ = range; }

 private:
  void choose();
  void begin_learning();

  std::string name_;
  quant::ObserverSettings settings_;
  bool fixed_ = false, fused_ = false;
  std::optional<LearnedGrid> learned_;
  std::int32_t lo_, hi_;
  Range now_, next_;
  std::optional<std::pair<float, float>> extent_;  // of this step
};

/// The range of weights whose grid follows a moving average, as PyTorch's observers have it: infinite before the first
/// step.
struct WeightRange {
  Tensor running;           ///< float32 [2, grids]: minima, maxima
  std::vector<float> next;  ///< what the forward run at hand makes of them

  bool seen() const;
  void observe(std::span<const float> mins, std::span<const float> maxs, float weight_of_newest);
  void commit();
};

/// The weights of a node: a grid for each output channel or for all, learned or over the extent that they have at each
/// step, or over a moving average of it.
struct WeightGrid {
  quant::ObserverSettings settings;
  std::optional<std::size_t> norm;  ///< the node of the normalization that is folded into the weights
  std::size_t input;                ///< the grid of what they are multiplied with
  std::optional<LearnedGrid> learned;
  std::vector<std::size_t> parameters;    ///< of `learned`, in Quantization::parameters
  bool begins = false;                    ///< what is learned has been given in this step
  std::optional<WeightRange> range = {};  ///< as PyTorch's FusedMovingAvgObsFakeQuantize has it

  void begin_with(const Quantizer &grid);
  void commit();
  void revert();

  /// With the rounding of the settings; null where no grid has been learned.
  QuantizerPtr quantizer() const;
};

/// The mapping that weights have: their integers, and how they come there.
QuantizerPtr weight_form(const quant::ObserverSettings &settings);

/// What quantization adds to a network.
struct Quantization {
  explicit Quantization(const quant::PreparedModel &prepared);

  void commit();
  void revert();
  void follow();
  void before_update();
  void after_update();
  std::map<std::string, QuantizerPtr> weight_quantizers(const graph::Graph &g) const;
  std::map<std::string, Tensor> weight_ranges(const graph::Graph &g) const;

  quant::Config config;
  std::vector<ActivationGrid> activations;              ///< one for each group of the placement
  std::map<graph::ValueId, std::size_t> activation_of;  ///< values of the training graph that are rounded when made
  std::map<std::size_t, WeightGrid> weights;            ///< nodes of the training graph whose weights are rounded
  /// Constants that nodes of the training graph move onto a grid: node and input, and the grid.
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> constants;
  std::vector<Parameter> parameters;                    ///< what is learned of grids
  std::vector<std::vector<std::size_t>> of_activation;  ///< those of each activation grid
};

}  // namespace qtn::train
