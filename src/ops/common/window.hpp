// SPDX-License-Identifier: Apache-2.0
// Where the windows of a convolution or pool lie, from ONNX attributes that may be hostile.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/attrs.hpp"
#include "core/shape.hpp"

namespace qtn::ops {

struct Span {
  std::int64_t begin, end;  ///< empty where end <= begin
};

/// Geometry along `rank` spatial axes, outermost first. Output o reads input o * stride - pad_begin + k * dilation for
/// each tap k in [0, kernel). All values are below 2^31, so their products do not overflow.
struct Window {
  static constexpr std::size_t kMaxRank = 3;
  using Dims = std::array<std::int64_t, kMaxRank>;

  std::size_t rank = 0;
  Dims in{}, kernel{}, stride{}, dilation{}, pad_begin{}, pad_end{}, out{};

  /// Taps of output o that fall on the input.
  Span taps(std::size_t axis, std::int64_t o) const;

  /// Taps of output o that fall on the input or its declared padding: ceil_mode reaches past both.
  Span padded_taps(std::size_t axis, std::int64_t o) const;

  /// taps() of every output along each axis, since dividing again inside of planes is slow.
  using TapTable = std::array<std::vector<Span>, kMaxRank>;
  TapTable tap_table() const;
  TapTable padded_tap_table() const;

  /// Outputs whose tap k falls on the input.
  Span outputs(std::size_t axis, std::int64_t k) const;

  std::int64_t taps_count() const;
  std::int64_t outputs_count() const;

  /// The same windows over three axes, with leading axes of length 1.
  Window lifted() const;
};

/// The window of Conv with x [n][c][spatial...] and weight [m][c / group][kernel...].
Window conv_window(const Attrs &attrs, const Shape &x, const Shape &weight);

/// The window of ConvTranspose with x [n][c][spatial...] and weight [c][m / group][kernel...]: those of the convolution
/// that goes from its output (`in`) to its input (`out`).
Window transposed_window(const Attrs &attrs, const Shape &x, const Shape &weight);

/// The window of MaxPool or AveragePool (`op`, for messages).
Window pool_window(const char *op, const Attrs &attrs, const Shape &x);

}  // namespace qtn::ops
