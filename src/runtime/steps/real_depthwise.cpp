// SPDX-License-Identifier: Apache-2.0
#include "base/size.hpp"
#include "kernels/depthwise_real/depthwise_real.hpp"
#include "kernels/kernel.hpp"
#include "runtime/layout.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

// A task is worth handing to a thread, and what its rows read stays in cache.
constexpr std::int64_t kBandRows = 14;
constexpr std::size_t kGroupChannels = 128;

/// Filters [channel][taps] become a row of channels for each tap; biases follow.
PackedWeights pack(const RealWeights &w) {
  const std::size_t channels = w.groups, taps = w.k;
  PackedWeights packed;
  packed.bytes = AlignedBuffer((Size(channels) * (taps + 1) * sizeof(float)).value());
  packed.offsets = {0, channels * taps * sizeof(float)};
  auto *to = reinterpret_cast<float *>(packed.bytes.data());
  const auto *weight = w.weight.as<const float>(), *bias = w.bias.has_data() ? w.bias.as<const float>() : nullptr;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t t = 0; t < taps; ++t) to[t * channels + c] = weight[c * taps + t];
    to[taps * channels + c] = bias ? bias[c] : 0.0f;
  }
  return packed;
}

class RealDepthwiseStep final : public TailedStep {
 public:
  RealDepthwiseStep(const Edge &x, const Edge &y, const ops::Window &window, const RealWeights &w,
                    const ops::Clamp &clamp, Isa isa, const PackCache &cache)
      : kernel_(kernels::choose(kernels::depthwise_real_kernels(), isa)),
        packed_(cache(0, [&] { return pack(w); })),
        x_(x.slot),
        image_(*as_image(x.form.shape, x.form.strides)),
        y_image_(*as_image(y.form.shape, y.form.strides)) {
    for (const std::size_t axis : {0, 1}) {
      args_.window.kernel[axis] = window.kernel[axis];
      args_.window.stride[axis] = window.stride[axis];
      args_.window.dilation[axis] = window.dilation[axis];
      args_.window.pad[axis] = window.pad_begin[axis];
    }
    args_.height = image_.h;
    args_.width = image_.w;
    args_.x_pixel = image_.pixel;
    args_.columns = y_image_.w;
    args_.tap = image_.c;
    args_.lo = clamp.lo;
    args_.hi = clamp.hi;
    kernel = kernel_.name;
    float_mode = FloatMode::without_denormals;
    reads = {x.slot};
    writes = {y.slot};
    macs = image_.n * window.outputs_count() * image_.c * static_cast<std::int64_t>(w.k);
  }

  bool spread_output(std::ptrdiff_t pixel) override {
    y_image_.pixel = pixel;
    return true;
  }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_).as<const float>();
    auto *y = c.tensor(output()).as<float>();
    const auto *weights = reinterpret_cast<const float *>(packed_->bytes.data());
    const auto *bias = reinterpret_cast<const float *>(packed_->bytes.data() + packed_->offsets[1]);
    const std::size_t bands = ceil_div(static_cast<std::size_t>(y_image_.h), static_cast<std::size_t>(kBandRows));
    const std::size_t channels = static_cast<std::size_t>(image_.c), groups = ceil_div(channels, kGroupChannels);
    const std::size_t ns = static_cast<std::size_t>(macs) / 16;
    for_chunks(c, static_cast<std::size_t>(image_.n) * bands * groups, ns, [&](std::size_t, std::size_t chunk) {
      const auto image = static_cast<std::int64_t>(chunk / (bands * groups));
      const std::size_t channel = chunk % groups * kGroupChannels;
      kernels::DepthwiseRealArgs args = args_;
      args.first_row = static_cast<std::int64_t>(chunk / groups % bands) * kBandRows;
      args.rows = std::min(kBandRows, y_image_.h - args.first_row);
      args.x = x + image * image_.pixels() * image_.pixel + channel;
      args.channels = std::min(kGroupChannels, channels - channel);
      args.weights = weights + channel;
      args.bias = bias + channel;
      args.y = y + image * y_image_.pixels() * y_image_.pixel + channel;
      args.y_pixel = y_image_.pixel;
      kernel_.run(args);
      const std::int64_t first = args.first_row * y_image_.w;
      run_tails(c, {reinterpret_cast<std::uint8_t *>(args.y + first * y_image_.pixel),
                    y_image_.pixel * static_cast<std::ptrdiff_t>(sizeof(float)),
                    static_cast<std::size_t>(image * y_image_.pixels() + first),
                    static_cast<std::size_t>(args.rows * y_image_.w), channel * sizeof(float),
                    args.channels * sizeof(float)});
    });
  }

 private:
  const kernels::DepthwiseRealKernel &kernel_;
  PackedPtr packed_;
  SlotId x_;
  Image image_, y_image_;
  kernels::DepthwiseRealArgs args_{};
};

}  // namespace

StepPtr make_real_depthwise(const Edge &x, const Edge &y, const ops::Window &window, const RealWeights &w,
                            const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  return std::make_unique<RealDepthwiseStep>(x, y, window, w, clamp, isa, cache);
}

}  // namespace qtn::runtime
