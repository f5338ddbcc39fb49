// SPDX-License-Identifier: Apache-2.0
// Logits as rows: the C numbers of each place of [N, C, ...], or of [N, ..., C] and the like.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/elementary.hpp"
#include "base/error.hpp"
#include "core/tensor.hpp"
#include "kernels/activation/activation.hpp"

namespace qtn::train {

struct Rows {
  Shape places;  ///< the shape of labels
  std::size_t count, classes;
  std::size_t step;   ///< between the numbers of a row, in elements
  std::size_t batch;  ///< N

  /// `axis` counts the classes, from the last axis where it is negative.
  Rows(const char *who, const Tensor &logits, std::int64_t axis) {
    const Shape &shape = logits.shape();
    const auto rank = static_cast<std::int64_t>(shape.size());
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    if (rank < 2 || at < 1 || at >= shape.size() || shape[at] == 0)
      fail(QTN_ESHAPE, who, ": the output is ", to_string(shape), ", not logits of a batch with classes along axis ",
           axis);
    places = shape;
    places.erase(at);
    classes = static_cast<std::size_t>(shape[at]);
    step = static_cast<std::size_t>(element_count(shape, at + 1, shape.size()));
    batch = static_cast<std::size_t>(shape[0]);
    count = static_cast<std::size_t>(element_count(places));
  }

  /// The index of a row's first element.
  std::size_t begin(std::size_t row) const { return row / step * classes * step + row % step; }

  /// Rows that are worth a thread.
  std::size_t least() const { return 4096 / classes + 1; }
};

/// Some numbers of a row and their exponentials, side by side so that these are computed as vectors.
struct RowPart {
  static constexpr std::size_t kMost = 64;
  std::size_t count;
  std::array<double, kMost> logs, values;

  /// logs[i] = factor * x[first + i] - shift, values[i] = exp(logs[i])
  void load(const float *x, const Rows &rows, std::size_t first, double factor, double shift) {
    count = std::min(kMost, rows.classes - first);
    for (std::size_t i = 0; i < count; ++i) logs[i] = factor * static_cast<double>(x[(first + i) * rows.step]) - shift;
    kernels::activation_kernel().exponentials(logs.data(), values.data(), count);
  }
};

/// log(sum of exp(factor * x)) over a row: factor * x[k] less this is the logarithm of a softmax.
inline double log_sum(const float *x, const Rows &rows, double factor) {
  float top = x[0];
  for (std::size_t k = 1; k < rows.classes; ++k) top = x[k * rows.step] > top ? x[k * rows.step] : top;
  const double shift = factor * static_cast<double>(top);
  double sum = 0;
  RowPart part;
  for (std::size_t first = 0; first < rows.classes; first += RowPart::kMost) {
    part.load(x, rows, first, factor, shift);
    for (std::size_t i = 0; i < part.count; ++i) sum += part.values[i];
  }
  return shift + logarithm(sum);
}

}  // namespace qtn::train
