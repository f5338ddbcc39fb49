// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.hpp"

#include "kernels/kernel.hpp"
#include "ops/requantization.hpp"
#include "runtime/steps/steps.hpp"
#include "runtime/steps/windowed.hpp"

namespace qtn::runtime {
namespace {

class PoolStep final : public WindowedStep {
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
  void row(const std::uint8_t *image, std::int64_t oy, std::uint8_t *y, const std::uint8_t **windows) const override {
    const ops::Span ys = window_.taps(0, oy), padded_ys = window_.padded_taps(0, oy);
    kernels::PoolArgs args{};
    args.windows = windows;
    args.pixel_step = window_.stride[1] * picture_.pixel;
    args.channels = static_cast<std::size_t>(picture_.c);
    args.ldy = y_picture_.pixel;
    args.x_zero = x_zero_;
    args.range = range_;
    for_runs(window_, [&](std::int64_t ox, std::int64_t count, ops::Span xs) {
      std::size_t taps = 0;
      for (std::int64_t ky = ys.begin; ky < ys.end; ++ky)
        for (std::int64_t kx = xs.begin; kx < xs.end; ++kx)
          windows[taps++] = tap_pixel(image, picture_, window_, oy, ox, ky, kx);
      args.window_count = taps;
      args.pixels = static_cast<std::size_t>(count);
      args.y = y + ox * y_picture_.pixel;
      if (pooling_ == Pooling::max) return kernel_.max(args);
      const ops::Span padded_xs = window_.padded_taps(1, ox);
      const std::int64_t divisor = count_include_pad_
                                       ? (padded_ys.end - padded_ys.begin) * (padded_xs.end - padded_xs.begin)
                                       : static_cast<std::int64_t>(taps);
      args.multiplier = ops::mean_multiplier(x_scale_, y_scale_, divisor);
      kernel_.average(args);
    });
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
