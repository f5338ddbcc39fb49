// SPDX-License-Identifier: Apache-2.0
// Dimensions or strides: a short list with inline storage, so that views cost no allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace qtn {

inline constexpr std::size_t kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);  ///< Throws QTN_ESHAPE over kMaxRank.

  std::size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t *begin() { return dims_.data(); }
  std::int64_t *end() { return dims_.data() + rank_; }
  const std::int64_t *begin() const { return dims_.data(); }
  const std::int64_t *end() const { return dims_.data() + rank_; }
  const std::int64_t *data() const { return dims_.data(); }
  std::int64_t &operator[](std::size_t i) { return dims_[i]; }
  std::int64_t operator[](std::size_t i) const { return dims_[i]; }
  std::int64_t back() const { return dims_[rank_ - 1]; }
  void push_back(std::int64_t dim);
  void insert(std::size_t at, std::int64_t dim);
  void erase(std::size_t at);

  friend bool operator==(const Shape &a, const Shape &b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

/// Product of the dimensions; 1 for rank 0. Throws QTN_ESHAPE on a negative dimension or when it does not fit 63 bits.
std::int64_t element_count(const Shape &shape);

/// Product of dims[from, to).
std::int64_t element_count(const Shape &shape, std::size_t from, std::size_t to);

/// Whether the bytes and strides of such a tensor of the widest elements are numbers, also beside an empty dimension.
bool has_strides(const Shape &shape);

/// Row-major strides, in elements.
Shape contiguous_strides(const Shape &shape);

/// Strides of the same shape stored with axis 1 innermost (NHWC for rank 4).
Shape channels_last_strides(const Shape &shape);

/// Whether two strides place the elements of `shape` alike: the step of an axis of length 1 does not matter.
bool same_layout(const Shape &shape, const Shape &a, const Shape &b);

/// Strides under which `shape` and `strides` read as `target` without moving an element, if there are any.
std::optional<Shape> reshape_strides(const Shape &shape, const Shape &strides, const Shape &target);

/// "1x3x224x224", "scalar" for rank 0, "?" for an unknown dimension (-1).
std::string to_string(const Shape &shape);

/// axis in [-rank, rank) to [0, rank). Throws QTN_EINVAL naming `what`.
std::size_t normalize_axis(std::int64_t axis, std::size_t rank, const char *what);

/// The shape both operands take under NumPy broadcasting. Throws QTN_ESHAPE naming both.
Shape broadcast(const Shape &a, const Shape &b, const char *what);

/// Strides with which an operand of `shape` and `strides` is read at `target` indices: 0 along broadcast axes.
Shape broadcast_strides(const Shape &shape, const Shape &strides, const Shape &target);

}  // namespace qtn
