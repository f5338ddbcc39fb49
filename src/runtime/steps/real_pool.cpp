// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/size.hpp"
#include "kernels/kernel.hpp"
#include "kernels/pool_real/pool_real.hpp"
#include "kernels/real/real.hpp"
#include "runtime/steps/windowed.hpp"

namespace qtn::runtime {
namespace {

class RealPoolStep final : public WindowedStep<float> {
 public:
  RealPoolStep(const Edge &x, const Edge &y, const ops::Window &window, Pooling pooling, bool count_include_pad,
               const ops::Clamp &clamp, Isa isa)
      : WindowedStep(x, y, window),
        kernel_(kernels::choose(kernels::pool_real_kernels(), isa)),
        pooling_(pooling),
        count_include_pad_(count_include_pad),
        clamp_(clamp),
        clamp_kernel_(kernels::choose(kernels::real_kernels(), isa).clamp),
        in_two_steps_(overlaps()) {
    kernel = kernel_.name;
  }

  std::size_t lane_bytes() const override {
    const std::size_t pointers = WindowedStep::lane_bytes();
    return in_two_steps_ ? round_up((Size(pointers) + Size(line_size()) * sizeof(float)).value(), kAlignment)
                         : pointers;
  }

 private:
  /// Whether windows overlap so far that it is quicker to make lines first, in which windows are one high, and the pixels
  /// of their taps one.
  bool overlaps() const {
    const std::int64_t high = most_taps(0) * most_taps(2), wide = most_taps(1);
    const std::int64_t at_once = high * wide * window_.out[1], in_two = high * window_.in[1] + wide * window_.out[1];
    return high > 1 && wide > 1 && image_.pixel == image_.c && 3 * in_two <= 2 * at_once;
  }
  std::int64_t line_size() const { return image_.w * image_.c; }

  void row(const float *image, std::int64_t oz, std::int64_t oy, float *y, const float **taps) const override {
    in_two_steps_ ? row_of_line(image, oz, oy, y, taps) : row_of_windows(image, oz, oy, y, taps);
    if (clamp_.changes_nothing()) return;
    const bool dense = y_image_.pixel == image_.c;
    const std::int64_t runs = dense ? 1 : window_.out[1], length = dense ? window_.out[1] * image_.c : image_.c;
    for (std::int64_t i = 0; i < runs; ++i)
      clamp_kernel_(y + i * y_image_.pixel, static_cast<std::size_t>(length), clamp_.lo, clamp_.hi);
  }

  void row_of_windows(const float *image, std::int64_t oz, std::int64_t oy, float *y, const float **taps) const {
    for_windows(image, oz, oy, taps, [&](std::int64_t ox, std::int64_t count, std::size_t tap_count) {
      pool(taps, tap_count, oz, oy, ox, count, static_cast<std::int64_t>(tap_count), y);
    });
  }

  void row_of_line(const float *image, std::int64_t oz, std::int64_t oy, float *y, const float **taps) const {
    const ops::Span zs = window_.taps(2, oz), ys = window_.taps(0, oy);
    kernels::PoolRealArgs args{};
    for (std::int64_t kz = zs.begin; kz < zs.end; ++kz)
      for (std::int64_t ky = ys.begin; ky < ys.end; ++ky)
        taps[args.tap_count++] =
            tap_pixel(image, image_, window_, {oy, 0, oz}, {ky, 0, kz}) + window_.pad_begin[1] * image_.pixel;
    const auto high = static_cast<std::int64_t>(args.tap_count);
    auto *line = reinterpret_cast<float *>(reinterpret_cast<std::byte *>(taps) + WindowedStep::lane_bytes());
    args.taps = taps;
    args.pixels = 1;
    args.channels = static_cast<std::size_t>(line_size());
    args.y = line;
    args.share = 1;
    if (high > 0) pooling_ == Pooling::max ? kernel_.max(args) : kernel_.average(args);
    for_runs(window_, [&](std::int64_t ox, std::int64_t count, ops::Span xs) {
      std::size_t used = 0;
      for (std::int64_t kx = xs.begin; high > 0 && kx < xs.end; ++kx)
        taps[used++] = line + (ox * window_.stride[1] - window_.pad_begin[1] + kx * window_.dilation[1]) * image_.c;
      pool(taps, used, oz, oy, ox, count, high * static_cast<std::int64_t>(used), y);
    });
  }

  /// Pixels from ox on, whose windows lie alike and have so many taps on the image.
  void pool(const float **taps, std::size_t tap_count, std::int64_t oz, std::int64_t oy, std::int64_t ox,
            std::int64_t count, std::int64_t on_image, float *y) const {
    kernels::PoolRealArgs args{};
    args.taps = taps;
    args.tap_count = tap_count;
    args.pixels = static_cast<std::size_t>(count);
    args.channels = static_cast<std::size_t>(image_.c);
    args.step = window_.stride[1] * image_.pixel;
    args.y = y + ox * y_image_.pixel;
    args.ldy = y_image_.pixel;
    if (tap_count == 0) return fill_without_taps(args);
    if (args.step == image_.c && args.ldy == image_.c) {  // pixels follow one another on both sides
      args.channels *= args.pixels;
      args.pixels = 1;
    }
    if (pooling_ == Pooling::max) return kernel_.max(args);
    args.share = 1 / static_cast<double>(count_include_pad_ ? padded_taps(oz, oy, ox) : on_image);
    kernel_.average(args);
  }

  /// A dilated window may step over a small input: its mean is that of padding, and nothing is less than its greatest.
  void fill_without_taps(const kernels::PoolRealArgs &args) const {
    const float value = pooling_ == Pooling::max ? -std::numeric_limits<float>::infinity() : 0.0f;
    for (std::size_t p = 0; p < args.pixels; ++p)
      std::fill_n(args.y + static_cast<std::ptrdiff_t>(p) * args.ldy, args.channels, value);
  }

  const kernels::PoolRealKernel &kernel_;
  Pooling pooling_;
  bool count_include_pad_;
  ops::Clamp clamp_;
  void (*clamp_kernel_)(float *y, std::size_t count, float lo, float hi);
  bool in_two_steps_;
};

}  // namespace

StepPtr make_real_pool(const Edge &x, const Edge &y, const ops::Window &window, Pooling pooling, bool count_include_pad,
                       const ops::Clamp &clamp, Isa isa) {
  return std::make_unique<RealPoolStep>(x, y, window, pooling, count_include_pad, clamp, isa);
}

}  // namespace qtn::runtime
