// SPDX-License-Identifier: Apache-2.0
#include "ops/common/fourier.hpp"

#include <bit>
#include <numbers>

#include "base/size.hpp"

namespace qtn::ops {
namespace {

using Number = Fourier::Number;

/// exp(-pi i numerator / denominator)
Number root(std::size_t numerator, std::size_t denominator) {
  const double angle = std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), -std::sin(angle)};
}

/// The product of finite numbers; that of the standard library looks for infinities.
Number times(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Fourier::Fourier(std::int64_t length, bool inverse)
    : length_(Size(length).value()), size_(std::bit_ceil(length_)), inverse_(inverse) {
  const bool is_power = size_ == length_;
  if (!is_power) size_ = std::bit_ceil((Size(length) * 2).value());
  roots_.resize(size_ / 2);
  for (std::size_t k = 0; k < roots_.size(); ++k) roots_[k] = root(2 * k, size_);
  if (is_power) return;
  // Bluestein: k n = (k^2 + n^2 - (k - n)^2) / 2 makes a convolution of it, which a longer transform computes.
  chirp_.resize(length_);
  std::size_t square = 0;  // k^2 modulo a whole turn
  for (std::size_t k = 0; k < length_; ++k) {
    chirp_[k] = root(square, length_);
    square = (square + 2 * k + 1) % (2 * length_);
  }
  filter_.resize(size_);
  filter_[0] = std::conj(chirp_[0]);
  for (std::size_t k = 1; k < length_; ++k) filter_[k] = filter_[size_ - k] = std::conj(chirp_[k]);
  run_power(filter_, false);
  scratch_.resize(size_);
}

void Fourier::run_power(std::span<Number> x, bool inverse) const {
  const std::size_t n = x.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (std::size_t half = 1; half < n; half *= 2)
    for (std::size_t start = 0; start < n; start += 2 * half)
      for (std::size_t k = 0; k < half; ++k) {
        const Number r = roots_[k * (n / 2 / half)];
        const Number odd = times(inverse ? std::conj(r) : r, x[start + half + k]), even = x[start + k];
        x[start + k] = even + odd;
        x[start + half + k] = even - odd;
      }
}

void Fourier::run(std::span<Number> x) {
  if (chirp_.empty()) return run_power(x, inverse_);
  // The inverse is the transform of the conjugates, conjugated.
  const auto turned = [this](Number v) { return inverse_ ? std::conj(v) : v; };
  std::fill(scratch_.begin(), scratch_.end(), Number());
  for (std::size_t k = 0; k < length_; ++k) scratch_[k] = times(turned(x[k]), chirp_[k]);
  run_power(scratch_, false);
  for (std::size_t k = 0; k < size_; ++k) scratch_[k] = times(scratch_[k], filter_[k]);
  run_power(scratch_, true);
  const double share = 1 / static_cast<double>(size_);
  for (std::size_t k = 0; k < length_; ++k) x[k] = turned(times(scratch_[k], chirp_[k]) * share);
}

}  // namespace qtn::ops
