// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

#include <cstring>

#include "kernels/kernel.hpp"
#include "runtime/steps/steps.hpp"
#include "runtime/steps/windowed.hpp"

namespace qtn::runtime {
namespace {

PackedWeights pack(const kernels::DepthwiseKernel &kernel, const LinearWeights &w) {
  // One filter of k taps for each channel becomes one row of channels for each tap.
  std::vector<std::int8_t> by_tap(w.groups * w.k);
  for (std::size_t c = 0; c < w.groups; ++c)
    for (std::size_t t = 0; t < w.k; ++t) by_tap[t * w.groups + c] = w.weight[c * w.k + t];
  PackedWeights packed;
  packed.bytes = AlignedBuffer(kernel.packed_bytes(w.k, w.groups));
  packed.offsets = {0};
  kernel.pack(packed.bytes.data(), {by_tap.data(), w.bias.data(), w.multiplier.data(), w.k, w.groups});
  return packed;
}

class DepthwiseStep final : public WindowedStep {
 public:
  DepthwiseStep(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                const QuantizedRange &range, Isa isa, const PackCache &cache)
      : WindowedStep(x, y, window),
        kernel_(kernels::choose(kernels::depthwise_kernels(), isa)),
        packed_(cache(0, [&] { return pack(kernel_, w); })),
        range_(range),
        outside_(static_cast<std::size_t>(picture_.c)) {
    std::memset(outside_.data(), x.form.quantizer->zero_point(), outside_.size());
    kernel = kernel_.name;
    macs = picture_.n * window.outputs_count() * picture_.c * static_cast<std::int64_t>(w.k);
  }

 private:
  void row(const std::uint8_t *image, std::int64_t oy, std::uint8_t *y, const std::uint8_t **taps) const override {
    const std::int64_t kh = window_.kernel[0], kw = window_.kernel[1];
    const ops::Span inside_y = window_.taps(0, oy);
    kernels::DepthwiseArgs args{};
    args.taps = taps;
    args.tap_count = static_cast<std::size_t>(kh * kw);
    args.channels = static_cast<std::size_t>(picture_.c);
    args.packed = packed_->bytes.data();
    args.ldy = y_picture_.pixel;
    args.range = range_;
    const auto *outside = outside_.as<const std::uint8_t>();
    for_runs(window_, [&](std::int64_t ox, std::int64_t count, ops::Span inside_x) {
      // A run of several pixels steps all its taps alike, so a row of taps outside the picture sends it pixel by pixel.
      const bool rows_inside = inside_y.begin == 0 && inside_y.end == kh;
      const std::int64_t step = rows_inside ? count : 1;
      for (std::int64_t done = 0; done < count; done += step) {
        for (std::int64_t ky = 0; ky < kh; ++ky)
          for (std::int64_t kx = 0; kx < kw; ++kx) {
            const bool inside = ky >= inside_y.begin && ky < inside_y.end && kx >= inside_x.begin && kx < inside_x.end;
            taps[ky * kw + kx] = inside ? tap_pixel(image, picture_, window_, oy, ox + done, ky, kx) : outside;
          }
        args.pixels = static_cast<std::size_t>(step);
        args.pixel_step = window_.stride[1] * picture_.pixel;
        args.y = y + (ox + done) * y_picture_.pixel;
        kernel_.run(args);
      }
    });
  }

  const kernels::DepthwiseKernel &kernel_;
  PackedPtr packed_;
  QuantizedRange range_;
  AlignedBuffer outside_;  ///< a pixel of zero points
};

}  // namespace

StepPtr make_depthwise(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                       const QuantizedRange &range, Isa isa, const PackCache &cache) {
  return std::make_unique<DepthwiseStep>(x, y, window, w, range, isa, cache);
}

}  // namespace qtn::runtime
