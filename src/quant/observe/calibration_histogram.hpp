// SPDX-License-Identifier: Apache-2.0
// The histograms of ONNX Runtime's and NVIDIA's calibrators: bins over the range of the first tensor, and more bins of
// the same width as the range grows. Arithmetic follows theirs in float32.
//
// Theirs grow without end. Here there are at most eight times as many bins as at first: beyond that, pairs become one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "quant/observe/bytes.hpp"

namespace qtn::quant {

enum class Binning {
  onnx_absolute,  ///< |x|, from the smallest to the largest of the first tensor; smaller ones that follow do not count
  onnx_signed,    ///< x over [-t, t], t the largest |x|
  nvidia,         ///< |x| over [0, t]
};

class CalibrationHistogram {
 public:
  /// `bins`: how many at first; even for onnx_signed.
  CalibrationHistogram(Binning binning, std::int64_t bins) : binning_(binning), bins_(bins) {}

  bool empty() const { return counts_.empty(); }

  /// Throws QTN_EINVAL on a range that is too wide for float32; then nothing changed.
  void add(std::span<const float> values);

  /// The values of another with the same settings, each as the middle of its bin.
  void add(const CalibrationHistogram &other);

  const std::vector<std::uint64_t> &counts() const { return counts_; }
  float min() const { return min_; }  ///< the exact ends of what was seen
  float max() const { return max_; }
  float edge(std::size_t i) const { return edges_[std::min(i, edges_.size() - 1)]; }

  /// The lower edge of the bin in which `share` of all values is reached.
  float quantile(double share) const;

  void write(ByteWriter &out) const;
  void read(ByteReader &in);

 private:
  void place(std::span<const float> values, std::span<const std::uint64_t> weights, float min, float max);
  std::vector<double> first_edges(std::span<const float> values, float amax);
  std::vector<double> grown_edges(float amax);
  std::vector<double> grow_absolute(float amax);
  std::vector<double> grow_signed(float amax);
  std::vector<double> grow_nvidia(float amax);
  std::size_t limit() const { return 8 * static_cast<std::size_t>(bins_); }

  Binning binning_;
  std::int64_t bins_;
  std::vector<float> edges_;  ///< one more than counts; of nvidia, whose edges are rounded apart, at times none or two
  std::vector<std::uint64_t> counts_;  ///< empty: nothing seen
  float min_ = 0, max_ = 0;
};

}  // namespace qtn::quant
