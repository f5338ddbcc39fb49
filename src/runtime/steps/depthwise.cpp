// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

#include <algorithm>

#include "kernels/kernel.hpp"
#include "runtime/layout.hpp"
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
      for (std::size_t t = 0; t < w.k; ++t) by_tap[t * channels + c] = w.filter(first + c)[t];
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

/// Images of different sizes are seen through different windows of one node, whose packs are not the same: what
/// kernels/depthwise/blocks.hpp packs by.
std::size_t form_of(const kernels::DepthwiseWindow &w) {
  const bool is_adjacent = w.stride[1] == 1 && w.dilation[1] == 1;
  return 2 * static_cast<std::size_t>(w.kernel[1]) + is_adjacent;
}

/// Pixels that a dilated window reads together, along one axis of an image: every `apart`-th one. Outputs that are as far
/// apart are those of a window without dilation over them.
struct Sieve {
  std::ptrdiff_t apart, first_in, pad;

  Sieve(std::ptrdiff_t pixels_apart, std::ptrdiff_t of_padding, std::ptrdiff_t first_out) : apart(pixels_apart) {
    const std::ptrdiff_t at = first_out - of_padding;
    first_in = (at % apart + apart) % apart;
    pad = (first_in - at) / apart;
  }

  /// How many of the pixels before `end` there are, counted from `first`.
  std::ptrdiff_t count(std::ptrdiff_t first, std::ptrdiff_t end) const {
    return end <= first ? 0 : (end - first - 1) / apart + 1;
  }
};

/// What sums become: integers on a grid, or floats.
class Result {
 public:
  Result(const kernels::DepthwiseKernel &kernel, qdtype dtype, const QuantizedRange &range, const ops::Clamp &clamp)
      : run_(dtype == QTN_FLOAT32 ? kernel.run_f32 : kernel.run_u8),
        size_(dtype_size(dtype)),
        range_(range),
        clamp_(clamp) {}

  void run(kernels::DepthwiseArgs &args) const {
    args.range = range_;
    args.lo = clamp_.lo;
    args.hi = clamp_.hi;
    run_(args);
  }

  /// Some pixels of y, and of them some channels.
  OutputBlock block(std::uint8_t *y, const Image &image, std::int64_t first, std::int64_t pixels, std::size_t channel,
                    std::size_t channels) const {
    const std::ptrdiff_t pixel = image.pixel * static_cast<std::ptrdiff_t>(size_);
    return {y + first * pixel + channel * size_, pixel,           static_cast<std::size_t>(first),
            static_cast<std::size_t>(pixels),    channel * size_, channels * size_};
  }

 private:
  void (*run_)(const kernels::DepthwiseArgs &);
  std::size_t size_;
  QuantizedRange range_;
  ops::Clamp clamp_;
};

/// Tasks are bands of rows of one group of channels.
class DepthwiseStep final : public TailedStep {
 public:
  DepthwiseStep(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache)
      : kernel_(kernels::choose(kernels::depthwise_kernels(), isa)),
        window_(kernel_window(window)),
        x_(x.slot),
        image_(*as_image(x.form.shape, x.form.strides)),
        y_image_(*as_image(y.form.shape, y.form.strides)),
        result_(kernel_, y.form.dtype, range, clamp),
        outside_(static_cast<std::uint8_t>(x.form.quantizer->zero_point())) {
    for (const std::size_t axis : {0, 1}) {
      if (window_.kernel[axis] == 1) window_.dilation[axis] = 1;
      if (window_.stride[axis] == 1) std::swap(apart_[axis], window_.dilation[axis]);
    }
    packed_ = cache(form_of(window_), [&] { return pack(kernel_, window_, w); });
    kernel = kernel_.name;
    integer = true;
    reads = {x.slot};
    writes = {y.slot};
    macs = image_.n * window.outputs_count() * image_.c * static_cast<std::int64_t>(w.k);
  }

  bool spread_output(std::ptrdiff_t pixel) override {
    y_image_.pixel = pixel;
    return true;
  }

  std::size_t lane_bytes() const override { return round_up(kernel_.scratch_bytes(window_), kAlignment); }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_).as<const std::uint8_t>();
    auto *y = c.tensor(output()).as<std::uint8_t>();  // bytes, whatever they are of
    const std::size_t groups = packed_->offsets.size(), band_rows = kBandRows * static_cast<std::size_t>(apart_[0]);
    const std::size_t bands = ceil_div(static_cast<std::size_t>(y_image_.h), band_rows);
    const std::size_t ns = static_cast<std::size_t>(macs) / 128;
    for_chunks(c, static_cast<std::size_t>(image_.n) * bands * groups, ns, [&](std::size_t lane, std::size_t chunk) {
      const auto image = static_cast<std::int64_t>(chunk / (bands * groups));
      const std::size_t band = chunk / groups % bands, group = chunk % groups;
      const std::size_t channel = group * kGroupChannels;
      const auto row = static_cast<std::int64_t>(band * band_rows);
      const std::int64_t end = std::min(row + static_cast<std::int64_t>(band_rows), y_image_.h);
      kernels::DepthwiseArgs args{};
      args.outside = outside_;
      args.channels = std::min(kGroupChannels, static_cast<std::size_t>(image_.c) - channel);
      args.packed = packed_->bytes.data() + packed_->offsets[group];
      args.scratch = c.lane_scratch(lane);
      const std::uint8_t *from = x + image * image_.pixels() * image_.pixel + channel;
      for (std::ptrdiff_t i = 0; i < std::min(apart_[0], y_image_.h); ++i)
        for (std::ptrdiff_t j = 0; j < std::min(apart_[1], y_image_.w); ++j) {
          const Sieve rows(apart_[0], window_.pad[0], i), columns(apart_[1], window_.pad[1], j);
          sift(args, rows, columns, from);
          args.first_row = rows.count(i, row);
          args.rows = rows.count(i, end) - args.first_row;
          args.columns = columns.count(j, y_image_.w);
          args.y = result_.block(y, y_image_, image * y_image_.pixels() + i * y_image_.w + j, 0, channel, 0).y;
          if (args.rows > 0) result_.run(args);
        }
      const std::int64_t first_pixel = (image * y_image_.h + row) * y_image_.w;
      run_tails(c, result_.block(y, y_image_, first_pixel, (end - row) * y_image_.w, channel, args.channels));
    });
  }

 private:
  /// The pixels of an image, which begins at `from`, that these outputs read.
  void sift(kernels::DepthwiseArgs &args, const Sieve &rows, const Sieve &columns, const std::uint8_t *from) const {
    const std::ptrdiff_t row = image_.w * image_.pixel;
    args.window = window_;
    args.window.pad[0] = rows.pad;
    args.window.pad[1] = columns.pad;
    args.x = from + rows.first_in * row + columns.first_in * image_.pixel;
    args.height = rows.count(rows.first_in, image_.h);
    args.width = columns.count(columns.first_in, image_.w);
    args.x_row = rows.apart * row;
    args.x_pixel = columns.apart * image_.pixel;
    args.y_row = rows.apart * y_image_.w * y_image_.pixel;
    args.y_pixel = columns.apart * y_image_.pixel;
  }

  const kernels::DepthwiseKernel &kernel_;
  kernels::DepthwiseWindow window_;
  std::ptrdiff_t apart_[2] = {1, 1};  ///< pixels that are read together, where taps are apart and outputs are not
  PackedPtr packed_;
  SlotId x_;
  Image image_, y_image_;
  Result result_;
  std::uint8_t outside_;
};

/// Over volumes: rows of taps, which lie in several planes, are copied below one another for each row of outputs.
class VolumeStep final : public TailedStep {
 public:
  VolumeStep(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
             const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache)
      : kernel_(kernels::choose(kernels::depthwise_kernels(), isa)),
        window_(window),
        rows_(kernel_window(window)),
        x_(x.slot),
        image_(*as_image(x.form.shape, x.form.strides)),
        y_image_(*as_image(y.form.shape, y.form.strides)),
        result_(kernel_, y.form.dtype, range, clamp),
        outside_(static_cast<std::uint8_t>(x.form.quantizer->zero_point())) {
    rows_.kernel[0] = window.kernel[2] * window.kernel[0];
    rows_.stride[0] = rows_.dilation[0] = 1;
    rows_.pad[0] = 0;
    packed_ = cache(form_of(rows_), [&] { return pack(kernel_, rows_, w); });
    kernel = kernel_.name;
    integer = true;
    reads = {x.slot};
    writes = {y.slot};
    macs = image_.n * window.outputs_count() * image_.c * static_cast<std::int64_t>(w.k);
  }

  bool spread_output(std::ptrdiff_t pixel) override {
    y_image_.pixel = pixel;
    return true;
  }

  std::size_t lane_bytes() const override { return kernel_bytes() + round_up(rows_bytes(), kAlignment); }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_).as<const std::uint8_t>();
    auto *y = c.tensor(output()).as<std::uint8_t>();  // bytes, whatever they are of
    const auto lines = static_cast<std::size_t>(y_image_.h);
    for_chunks(c, static_cast<std::size_t>(image_.n) * lines, static_cast<std::size_t>(macs) / 64,
               [&](std::size_t lane, std::size_t chunk) {
                 const auto image = static_cast<std::int64_t>(chunk / lines),
                            line = static_cast<std::int64_t>(chunk % lines);
                 const std::int64_t first = (image * y_image_.h + line) * y_image_.w;
                 auto *copy = reinterpret_cast<std::uint8_t *>(c.lane_scratch(lane) + kernel_bytes());
                 gather(copy, x + image * image_.pixels() * image_.pixel, line / window_.out[0], line % window_.out[0]);
                 for (std::size_t group = 0; group < packed_->offsets.size(); ++group) {
                   const std::size_t channel = group * kGroupChannels;
                   kernels::DepthwiseArgs args{};
                   args.window = rows_;
                   args.x = copy + channel;
                   args.height = rows_.kernel[0];
                   args.width = image_.w;
                   args.x_row = image_.w * image_.c;
                   args.x_pixel = image_.c;
                   args.outside = outside_;
                   args.rows = 1;
                   args.columns = y_image_.w;
                   args.channels = std::min(kGroupChannels, static_cast<std::size_t>(image_.c) - channel);
                   args.packed = packed_->bytes.data() + packed_->offsets[group];
                   const OutputBlock block = result_.block(y, y_image_, first, y_image_.w, channel, args.channels);
                   args.y = block.y;
                   args.y_row = y_image_.w * y_image_.pixel;
                   args.y_pixel = y_image_.pixel;
                   args.scratch = c.lane_scratch(lane);
                   result_.run(args);
                   run_tails(c, block);
                 }
               });
  }

 private:
  std::size_t kernel_bytes() const { return round_up(kernel_.scratch_bytes(rows_), kAlignment); }
  std::size_t rows_bytes() const {
    return static_cast<std::size_t>(rows_.kernel[0] * image_.w * image_.c) + kReadSlack;
  }

  void gather(std::uint8_t *to, const std::uint8_t *image, std::int64_t oz, std::int64_t oy) const {
    for (std::int64_t kz = 0; kz < window_.kernel[2]; ++kz)
      for (std::int64_t ky = 0; ky < window_.kernel[0]; ++ky, to += image_.w * image_.c) {
        const std::int64_t z = oz * window_.stride[2] - window_.pad_begin[2] + kz * window_.dilation[2],
                           r = oy * window_.stride[0] - window_.pad_begin[0] + ky * window_.dilation[0];
        if (z < 0 || z >= window_.in[2] || r < 0 || r >= window_.in[0]) {
          std::fill_n(to, image_.w * image_.c, outside_);
          continue;
        }
        const std::uint8_t *from = image + (z * window_.in[0] + r) * image_.w * image_.pixel;
        for (std::int64_t p = 0, step = image_.pixel == image_.c ? image_.w : 1; p < image_.w; p += step)
          std::copy_n(from + p * image_.pixel, step * image_.c, to + p * image_.c);
      }
  }

  const kernels::DepthwiseKernel &kernel_;
  ops::Window window_;
  kernels::DepthwiseWindow rows_;
  PackedPtr packed_;
  SlotId x_;
  Image image_, y_image_;
  Result result_;
  std::uint8_t outside_;
};

}  // namespace

StepPtr make_depthwise(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                       const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  if (!is_flat(window)) return std::make_unique<VolumeStep>(x, y, window, w, range, clamp, isa, cache);
  return std::make_unique<DepthwiseStep>(x, y, window, w, range, clamp, isa, cache);
}

}  // namespace qtn::runtime
