// SPDX-License-Identifier: Apache-2.0
// Grids whose numbers are parameters of the network.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "quant/config.hpp"
#include "train/fake_quantize.hpp"

namespace qtn::train {

/// The grids of one tensor. Parameters are 0 until begin(), float32, and of the shape that was given:
///
///   lsq   .scale                 LSQ (Esser et al. 2020), at least 2^-23, as in PyTorch
///   lsq+  .scale, .zero_point    LSQ+ (Bhalgat et al. 2020): the latter from lo to hi, rounded where it is used
///   pact  .alpha, .beta          PACT (Choi et al. 2018): the grid is over [beta, alpha]; a beta of 0 stays 0
///   amax  .amax                  learn_amax of NVIDIA's toolkit with one bound for both sides: over [-amax, amax], or
///                                [0, amax] where the toolkit's grid is unsigned
class LearnedGrid {
 public:
  /// `shape`: that of the scales. `lo` and `hi` are where the grid saturates.
  LearnedGrid(quant::Learning kind, const quant::ObserverSettings &settings, std::int32_t lo, std::int32_t hi,
              const Shape &shape);

  struct Part {
    std::string_view suffix;
    Tensor value;
  };
  std::span<const Part> parts() const { return parts_; }

  bool begun() const;
  /// With grid number `c` as it was chosen for values from min to max.
  void begin(std::size_t c, float scale, std::int32_t zero, float min, float max) const;
  void forget() const;

  /// Around an update, which takes no more than half of a scale, an alpha or an amax: a scale that falls to nothing in
  /// one step rounds all to nothing, and would not come back.
  void before_update();
  void after_update() const;

  /// Parameters back to where they have a meaning, then what follows from them.
  void read(std::span<float> scales, std::span<std::int32_t> zeros) const;

  /// Gradients of x into dx, and of parts()[i] into d_parts[i] where it has data. Those of scales and zero points are
  /// multiplied by 1 / sqrt(count * steps): `steps` from zero to the end of a symmetric grid, from end to end of
  /// another; `count`: weights of a layer, whatever shares a scale, or elements of one sample, as in the paper;
  /// PyTorch's _LearnableFakeQuantize counts those of the whole batch.
  void backward(const Tensor &x, const Grids &grids, double count, const Tensor &dy, const Tensor &dx,
                std::span<const Tensor> d_parts, Scratch &scratch);

 private:
  std::span<float> values(std::size_t part) const;
  /// The lower end of the range that grid number `c` is over.
  float lower(std::size_t c) const;

  quant::Learning kind_;
  quant::ObserverSettings settings_;
  std::int32_t lo_, hi_;
  bool one_sided_;  ///< symmetric without negative values, as NVIDIA's toolkit has it
  double steps_;
  std::vector<Part> parts_;
  std::vector<float> d_scales_, d_zeros_;
  std::vector<float> before_;  // the first part
};

}  // namespace qtn::train
