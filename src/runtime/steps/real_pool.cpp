// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/size.hpp"
#include "kernels/kernel.hpp"
#include "kernels/pool_real/pool_real.hpp"
#include "runtime/steps/windowed.hpp"

namespace qtn::runtime {
namespace {

class RealPoolStep final : public WindowedStep<float> {
 public:
  RealPoolStep(const Edge &x, const Edge &y, const ops::Window &window, Pooling pooling, bool count_include_pad,
               Isa isa)
      : WindowedStep(x, y, window),
        kernel_(kernels::choose(kernels::pool_real_kernels(), isa)),
        pooling_(pooling),
        count_include_pad_(count_include_pad) {
    kernel = kernel_.name;
  }

 private:
  void row(const float *image, std::int64_t oz, std::int64_t oy, float *y, const float **taps) const override {
    kernels::PoolRealArgs args{};
    args.taps = taps;
    args.channels = static_cast<std::size_t>(image_.c);
    args.step = window_.stride[1] * image_.pixel;
    args.ldy = y_image_.pixel;
    for_windows(image, oz, oy, taps, [&](std::int64_t ox, std::int64_t count, std::size_t tap_count) {
      args.tap_count = tap_count;
      args.pixels = static_cast<std::size_t>(count);
      args.y = y + ox * y_image_.pixel;
      if (tap_count == 0) return fill_without_taps(args);
      if (pooling_ == Pooling::max) return kernel_.max(args);
      args.divisor =
          static_cast<double>(count_include_pad_ ? padded_taps(oz, oy, ox) : static_cast<std::int64_t>(tap_count));
      kernel_.average(args);
    });
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
};

}  // namespace

StepPtr make_real_pool(const Edge &x, const Edge &y, const ops::Window &window, Pooling pooling, bool count_include_pad,
                       Isa isa) {
  return std::make_unique<RealPoolStep>(x, y, window, pooling, count_include_pad, isa);
}

}  // namespace qtn::runtime
