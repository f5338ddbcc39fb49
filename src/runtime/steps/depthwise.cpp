// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

#include <algorithm>

#include "kernels/kernel.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

// A task is worth handing to a thread, and few enough rows to balance threads: one or two microseconds.
constexpr std::size_t kBandRows = 28, kGroupChannels = 256;

PackedWeights pack(const kernels::DepthwiseKernel &kernel, const kernels::DepthwiseWindow &window,
                   const LinearWeights &w) {
  // One filter of k taps for each channel becomes one row of channels for each tap.
  PackedWeights packed;
  std::size_t size = 0;
  for (std::size_t first = 0; first < w.groups; first += kGroupChannels) {
    packed.offsets.push_back(size);
    size += round_up(kernel.packed_bytes(window, std::min(kGroupChannels, w.groups - first)), kAlignment);
  }
  packed.bytes = AlignedBuffer(size);
  for (std::size_t i = 0; i < packed.offsets.size(); ++i) {
    const std::size_t first = i * kGroupChannels, channels = std::min(kGroupChannels, w.groups - first);
    std::vector<std::int8_t> by_tap(channels * w.k);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t t = 0; t < w.k; ++t) by_tap[t * channels + c] = w.weight[(first + c) * w.k + t];
    kernel.pack(packed.bytes.data() + packed.offsets[i], window,
                {by_tap.data(), w.bias.data() + first, w.multiplier.data() + first, channels});
  }
  return packed;
}

kernels::DepthwiseWindow kernel_window(const ops::Window &w) {
  kernels::DepthwiseWindow to{};
  for (const std::size_t axis : {0, 1}) {
    to.kernel[axis] = w.kernel[axis];
    to.stride[axis] = w.stride[axis];
    to.dilation[axis] = w.dilation[axis];
    to.pad[axis] = w.pad_begin[axis];
  }
  return to;
}

/// Tasks are bands of rows of one group of channels.
class DepthwiseStep final : public TailedStep {
 public:
  DepthwiseStep(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                const QuantizedRange &range, Isa isa, const PackCache &cache)
      : kernel_(kernels::choose(kernels::depthwise_kernels(), isa)),
        window_(kernel_window(window)),
        packed_(cache(0, [&] { return pack(kernel_, window_, w); })),
        x_(x.slot),
        picture_(*as_picture(x.form.shape, x.form.strides)),
        y_picture_(*as_picture(y.form.shape, y.form.strides)),
        range_(range),
        outside_(static_cast<std::uint8_t>(x.form.quantizer->zero_point())) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.slot};
    writes = {y.slot};
    macs = picture_.n * window.outputs_count() * picture_.c * static_cast<std::int64_t>(w.k);
  }

  bool spread_output(std::ptrdiff_t pixel) override {
    y_picture_.pixel = pixel;
    return true;
  }

  std::size_t lane_bytes() const override { return round_up(kernel_.scratch_bytes(window_), kAlignment); }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_).as<const std::uint8_t>();
    auto *y = c.tensor(output()).as<std::uint8_t>();
    const std::size_t groups = packed_->offsets.size();
    const std::size_t bands = ceil_div(static_cast<std::size_t>(y_picture_.h), kBandRows);
    const std::size_t ns = static_cast<std::size_t>(macs) / 128;
    for_chunks(c, static_cast<std::size_t>(picture_.n) * bands * groups, ns, [&](std::size_t lane, std::size_t chunk) {
      const auto image = static_cast<std::int64_t>(chunk / (bands * groups));
      const std::size_t band = chunk / groups % bands, group = chunk % groups;
      const std::size_t channel = group * kGroupChannels, row = band * kBandRows;
      kernels::DepthwiseArgs args{};
      args.window = window_;
      args.x = x + image * picture_.pixels() * picture_.pixel + channel;
      args.height = picture_.h;
      args.width = picture_.w;
      args.x_pixel = picture_.pixel;
      args.outside = outside_;
      args.first_row = static_cast<std::ptrdiff_t>(row);
      args.rows = std::min<std::ptrdiff_t>(kBandRows, y_picture_.h - args.first_row);
      args.columns = y_picture_.w;
      args.channels = std::min(kGroupChannels, static_cast<std::size_t>(picture_.c) - channel);
      args.packed = packed_->bytes.data() + packed_->offsets[group];
      args.y = y + image * y_picture_.pixels() * y_picture_.pixel + channel;
      args.y_pixel = y_picture_.pixel;
      args.range = range_;
      args.scratch = c.lane_scratch(lane);
      kernel_.run(args);
      const std::int64_t first_pixel = (image * y_picture_.h + args.first_row) * y_picture_.w;
      run_tails(c,
                {y + first_pixel * y_picture_.pixel + channel, y_picture_.pixel, static_cast<std::size_t>(first_pixel),
                 static_cast<std::size_t>(args.rows * y_picture_.w), channel, args.channels});
    });
  }

 private:
  const kernels::DepthwiseKernel &kernel_;
  kernels::DepthwiseWindow window_;
  PackedPtr packed_;
  SlotId x_;
  Picture picture_, y_picture_;
  QuantizedRange range_;
  std::uint8_t outside_;
};

}  // namespace

StepPtr make_depthwise(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                       const QuantizedRange &range, Isa isa, const PackCache &cache) {
  return std::make_unique<DepthwiseStep>(x, y, window, w, range, isa, cache);
}

}  // namespace qtn::runtime
