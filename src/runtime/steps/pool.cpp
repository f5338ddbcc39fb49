// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.hpp"

#include <algorithm>

#include "kernels/kernel.hpp"
#include "ops/common/requantization.hpp"
#include "runtime/steps/steps.hpp"
#include "runtime/steps/windowed.hpp"

namespace qtn::runtime {
namespace {

class PoolStep final : public WindowedStep<std::uint8_t> {
 public:
  PoolStep(const Edge &x, const Edge &y, const ops::Window &window, Pooling pooling, bool count_include_pad,
           const QuantizedRange &range, Isa isa)
      : WindowedStep(x, y, window),
        kernel_(kernels::choose(kernels::pool_kernels(), isa)),
        pooling_(pooling),
        count_include_pad_(count_include_pad),
        range_(range),
        x_zero_(x.form.quantizer->zero_point()),
        x_scale_(x.form.quantizer->scale()),
        y_scale_(y.form.quantizer->scale()) {
    kernel = kernel_.name;
  }

 private:
  void row(const std::uint8_t *image, std::int64_t oz, std::int64_t oy, std::uint8_t *y,
           const std::uint8_t **windows) const override {
    kernels::PoolArgs args{};
    args.windows = windows;
    args.pixel_step = window_.stride[1] * image_.pixel;
    args.ldy = y_image_.pixel;
    args.x_zero = x_zero_;
    args.range = range_;
    for_windows(image, oz, oy, windows, [&](std::int64_t ox, std::int64_t count, std::size_t taps) {
      args.window_count = taps;
      args.pixels = static_cast<std::size_t>(count);
      args.y = y + ox * y_image_.pixel;
      args.channels = static_cast<std::size_t>(image_.c);
      if (taps == 0) return fill_without_taps(args);
      if (args.pixel_step == image_.c && args.ldy == image_.c) {  // pixels follow one another on both sides
        args.channels *= args.pixels;
        args.pixels = 1;
      }
      if (pooling_ == Pooling::max) return kernel_.max(args);
      const std::int64_t divisor = count_include_pad_ ? padded_taps(oz, oy, ox) : static_cast<std::int64_t>(taps);
      args.multiplier = ops::mean_multiplier(x_scale_, y_scale_, divisor);
      kernel_.average(args);
    });
  }

  /// A dilated window may step over a small input: its mean is that of padding, and nothing is greater than its
  /// greatest.
  void fill_without_taps(const kernels::PoolArgs &args) const {
    const std::int32_t value = pooling_ == Pooling::max ? 0 : std::clamp(range_.zero, range_.lo, range_.hi);
    for (std::size_t p = 0; p < args.pixels; ++p)
      std::fill_n(args.y + static_cast<std::ptrdiff_t>(p) * args.ldy, args.channels, static_cast<std::uint8_t>(value));
  }

  const kernels::PoolKernel &kernel_;
  Pooling pooling_;
  bool count_include_pad_;
  QuantizedRange range_;
  std::int32_t x_zero_;
  float x_scale_, y_scale_;
};

}  // namespace

StepPtr make_pool(const Edge &x, const Edge &y, const ops::Window &window, Pooling pooling, bool count_include_pad,
                  const QuantizedRange &range, Isa isa) {
  return std::make_unique<PoolStep>(x, y, window, pooling, count_include_pad, range, isa);
}

}  // namespace qtn::runtime
