// SPDX-License-Identifier: Apache-2.0
#include "ops/common/softmax_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/activation/activation.hpp"
#include "ops/common/reduced_floats.hpp"

namespace qtn::ops {
namespace {

using kernels::Arithmetic;

/// Columns that lie side by side: some, line by line, or all of a plane, of which a line then has as many rows as fit.
class Columns {
 public:
  Columns(const float *x, float *y, std::size_t length, std::size_t inner, std::size_t count)
      : x_(x), y_(y), length_(length), inner_(inner), count_(count) {
    if (count < inner) return;
    width_ = std::max<std::size_t>(1, std::min(kMostColumns / count, length)) * count;
    lines_ = length * count / width_;
    rest_ = length * count % width_;
  }

  void run(bool logarithm) const {
    float top[kMostColumns], total[kMostColumns], ones[kMostColumns];
    double sums[kMostColumns] = {};
    std::fill_n(top, count_, -std::numeric_limits<float>::infinity());
    column_extremes(Arithmetic::max, x_, length_, row(), count_, top);
    subtract(repeated(top));
    for_lines([&](std::size_t at, std::size_t lines, std::size_t width) {
      activation_.run(kernels::Activation::exp, y_ + at, y_ + at, lines * width);
    });
    column_sums(Addends::numbers, y_, length_, row(), count_, sums);
    for (std::size_t c = 0; c < count_; ++c)
      total[c] = static_cast<float>(logarithm ? -std::log(sums[c]) : 1 / sums[c]);
    std::fill_n(ones, width_, 1.0f);
    if (logarithm) subtract(top);
    change(logarithm ? ones : repeated(total), logarithm ? repeated(total) : nullptr);
  }

 private:
  std::ptrdiff_t row() const { return static_cast<std::ptrdiff_t>(inner_); }

  /// Calls f(where they begin, lines without gaps, width).
  template <class F>
  void for_lines(F &&f) const {
    if (count_ < inner_) {
      for (std::size_t r = 0; r < length_; ++r) f(r * inner_, 1, count_);
      return;
    }
    f(0, lines_, width_);
    if (rest_ > 0) f(lines_ * width_, 1, rest_);
  }

  /// The numbers of the columns for each row of a line.
  float *repeated(float *numbers) const {
    for (std::size_t i = count_; i < width_; ++i) numbers[i] = numbers[i - count_];
    return numbers;
  }

  void subtract(const float *numbers) const {
    for_lines([&](std::size_t at, std::size_t lines, std::size_t width) {
      pointwise_.run({Arithmetic::sub,
                      lines,
                      width,
                      {x_ + at, static_cast<std::ptrdiff_t>(width), false},
                      {numbers, 0, false},
                      y_ + at});
    });
  }

  void change(const float *factor, const float *addend) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for_lines([&](std::size_t at, std::size_t lines, std::size_t width) {
      const auto step = static_cast<std::ptrdiff_t>(width);
      pointwise_.affine({lines, width, factor, addend, -kInfinity, kInfinity, y_ + at, step, y_ + at, step});
    });
  }

  const float *x_;
  float *y_;
  std::size_t length_, inner_, count_, width_ = count_, lines_ = 0, rest_ = 0;
  const kernels::PointwiseKernel &pointwise_ = kernels::pointwise_kernel();
  const kernels::ActivationKernel &activation_ = kernels::activation_kernel();
};

}  // namespace

void softmax_columns(const float *x, float *y, std::size_t length, std::size_t inner, bool logarithm) {
  for (std::size_t c = 0; c < inner; c += kMostColumns)
    Columns(x + c, y + c, length, inner, std::min(kMostColumns, inner - c)).run(logarithm);
}

}  // namespace qtn::ops
