// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length, in double.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace qtn::ops {

class Fourier {
 public:
  using Number = std::complex<double>;

  /// Forward, or inverse without the division by the length, which is at least 1.
  Fourier(std::int64_t length, bool inverse);

  /// In place, of `length` numbers.
  void run(std::span<Number> x);

 private:
  /// For a power of two: size_.
  void run_power(std::span<Number> x, bool inverse) const;

  std::size_t length_, size_;
  bool inverse_;
  std::vector<Number> roots_;    ///< exp(-2 pi i k / size_), half a turn
  std::vector<Number> chirp_;    ///< exp(-pi i k^2 / length_), where the length is no power of two
  std::vector<Number> filter_;   ///< the transform of what a chirp is convolved with
  std::vector<Number> scratch_;  ///< size_ numbers
};

}  // namespace qtn::ops
