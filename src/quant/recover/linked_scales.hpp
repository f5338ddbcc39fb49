// SPDX-License-Identifier: Apache-2.0
// Factors for the channels of linked layers. They are looked for on the largest weights of each channel, which are few,
// and moved into the weights in one pass when all are known.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "quant/recover/layer.hpp"
#include "quant/recover/links.hpp"

namespace qtn::quant {

class LinkedScales {
 public:
  /// The graph stays with the caller and as it is until apply().
  LinkedScales(graph::Graph &g, std::vector<Link> links);

  std::size_t count() const { return links_.size(); }
  const Link &link(std::size_t i) const { return links_[i]; }

  /// The largest magnitude of the weights and the bias that make each channel of a link (of a bias in front of a Relu,
  /// what it lets through), and of the weights that read it, with all factors so far; 0 for a channel of zeros.
  std::vector<double> made(std::size_t i) const;
  std::vector<double> read(std::size_t i) const;

  /// Divides channel c of link i by factors[c]: what makes it becomes smaller, what reads it larger. Products of
  /// factors stay within 2^-16 and 2^16.
  void divide(std::size_t i, std::span<const double> factors);

  /// Moves the factors into weights and biases. Other nodes that read the same constants keep the old ones.
  void apply();

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// A layer in terms of channels: what it has of input channel k for output channel c, whatever the taps.
  struct Peaks {
    std::int64_t channels, inputs_of_group, outputs_of_group;
    std::vector<float> weights;                 ///< [channels][inputs_of_group]
    std::vector<float> bias;                    ///< [channels], 0 where there is none
    std::size_t read_by = kNone, made = kNone;  ///< the links that it ends and that it begins

    std::size_t input(std::size_t c, std::size_t k) const {
      return c / static_cast<std::size_t>(outputs_of_group) * static_cast<std::size_t>(inputs_of_group) + k;
    }
  };

  Peaks peaks_of(std::size_t node, std::int64_t input_channels) const;
  void scale_constants(std::size_t node, const Peaks &peaks);
  std::vector<double> input_factors(const Peaks &peaks) const;  ///< at Peaks::input
  double output_divisor(const Peaks &peaks, std::size_t c) const;

  graph::Graph &g_;
  std::vector<Link> links_;
  std::vector<std::vector<double>> factors_;  // of each link
  std::map<std::size_t, Peaks> layers_;       // by node
};

}  // namespace qtn::quant
