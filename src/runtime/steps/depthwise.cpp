// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "kernels/kernel.hpp"
#include "runtime/layout.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

// A task is worth handing to a thread, and few enough rows to balance threads: one or two microseconds.
constexpr std::size_t kBandRows = 28, kGroupChannels = 256;

/// Where the packed weights of each group of channels begin, and the end of the last.
std::vector<std::size_t> places(const kernels::DepthwiseKernel &kernel, const kernels::DepthwiseWindow &window,
                                std::size_t channels) {
  std::vector<std::size_t> places{0};
  for (std::size_t first = 0; first < channels; first += kGroupChannels)
    places.push_back(places.back() +
                     round_up(kernel.packed_bytes(window, std::min(kGroupChannels, channels - first)), kAlignment));
  return places;
}

/// Channels [first, first + channels): one filter of k taps for each becomes one row of channels for each tap.
void copy_by_tap(const LinearWeights &w, std::size_t first, std::size_t channels, std::int8_t *to) {
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t t = 0; t < w.k; ++t) to[t * channels + c] = w.filter(first + c)[t];
}

PackedWeights pack(const kernels::DepthwiseKernel &kernel, const kernels::DepthwiseWindow &window,
                   const LinearWeights &w) {
  PackedWeights packed;
  packed.offsets = places(kernel, window, w.groups);
  packed.bytes = AlignedBuffer(packed.offsets.back());
  packed.offsets.pop_back();
  for (std::size_t i = 0; i < packed.offsets.size(); ++i) {
    const std::size_t first = i * kGroupChannels, channels = std::min(kGroupChannels, w.groups - first);
    std::vector<std::int8_t> by_tap(channels * w.k);
    copy_by_tap(w, first, channels, by_tap.data());
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

/// Weights that are packed in each run, for a grid of x that only the run knows: they are few.
class RunPack {
 public:
  RunPack(const DynamicOperand &x, const LinearWeights &w, const PackCache &cache)
      : x_(x), taps_(w.k), scales_(w.multiplier), by_tap_(cache(0, [&] { return by_tap(w); })) {}

  void pack(const Context &c, const kernels::DepthwiseKernel &kernel, const kernels::DepthwiseWindow &window,
            std::span<const std::size_t> places, std::byte *to) const {
    const float scale = *c.tensor(x_.scales).as<const float>();
    const std::int32_t zero = *c.tensor(x_.zeros).as<const std::int32_t>();
    const auto *weights = by_tap_->bytes.as<const std::int8_t>();
    const auto *sums = reinterpret_cast<const std::int32_t *>(by_tap_->bytes.data() + by_tap_->offsets[0]);
    std::array<std::int32_t, kGroupChannels> bias;
    std::array<float, kGroupChannels> multiplier;
    for (std::size_t first = 0; first < scales_.size(); first += kGroupChannels) {
      const std::size_t channels = std::min(kGroupChannels, scales_.size() - first);
      for (std::size_t i = 0; i < channels; ++i) {
        bias[i] = -zero * sums[first + i];
        multiplier[i] = scale * scales_[first + i];
      }
      kernel.pack(to + places[first / kGroupChannels], window,
                  {weights + first * taps_, bias.data(), multiplier.data(), channels});
    }
  }

 private:
  /// And behind them the sums of all filters.
  static PackedWeights by_tap(const LinearWeights &w) {
    PackedWeights packed;
    packed.offsets = {round_up(w.groups * w.k, kAlignment)};
    packed.bytes = AlignedBuffer(packed.offsets[0] + w.groups * sizeof(std::int32_t));
    auto *sums = reinterpret_cast<std::int32_t *>(packed.bytes.data() + packed.offsets[0]);
    for (std::size_t first = 0; first < w.groups; first += kGroupChannels)
      copy_by_tap(w, first, std::min(kGroupChannels, w.groups - first), packed.bytes.as<std::int8_t>() + first * w.k);
    for (std::size_t o = 0; o < w.groups; ++o) sums[o] = std::reduce(w.filter(o), w.filter(o) + w.k, 0);
    return packed;
  }

  DynamicOperand x_;
  std::size_t taps_;
  std::vector<float> scales_;
  PackedPtr by_tap_;
};

/// A window over every pixel of what it reads, and how many pixels are apart that are read together: where taps are
/// apart and outputs are not.
struct SiftedWindow {
  kernels::DepthwiseWindow window;
  std::ptrdiff_t apart[2] = {1, 1};

  explicit SiftedWindow(const ops::Window &of) : window(kernel_window(of)) {
    for (const std::size_t axis : {0, 1}) {
      if (window.kernel[axis] == 1) window.dilation[axis] = 1;
      if (window.stride[axis] == 1) std::swap(apart[axis], window.dilation[axis]);
    }
  }
};

/// Tasks are bands of rows of one group of channels.
class DepthwiseStep final : public TailedStep {
 public:
  DepthwiseStep(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache)
      : DepthwiseStep(x, y, window, w, range, clamp, isa) {
    outside_ = static_cast<std::uint8_t>(x.form.quantizer->zero_point());
    packed_ = cache(form_of(over_.window), [&] { return pack(kernel_, over_.window, w); });
  }

  /// Windows have no borders of their own.
  DepthwiseStep(const DynamicOperand &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                const ops::Clamp &clamp, Isa isa, const PackCache &cache)
      : DepthwiseStep(x.q, y, window, w, QuantizedRange{}, clamp, isa) {
    run_pack_.emplace(x, w, cache);
    reads.insert(reads.end(), {x.scales, x.zeros});
  }

  bool spread_output(std::ptrdiff_t pixel) override {
    y_image_.pixel = pixel;
    return true;
  }

  std::size_t lane_bytes() const override { return kernel_bytes() + (run_pack_ ? places_.back() : 0); }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_).as<const std::uint8_t>();
    auto *y = c.tensor(output()).as<std::uint8_t>();  // bytes, whatever they are of
    std::byte *in_run = c.lane_scratch(0) + kernel_bytes();
    if (run_pack_) run_pack_->pack(c, kernel_, over_.window, places_, in_run);
    const std::byte *packed = run_pack_ ? in_run : packed_->bytes.data();
    const std::size_t groups = places_.size() - 1, band_rows = kBandRows * static_cast<std::size_t>(over_.apart[0]);
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
      args.packed = packed + places_[group];
      args.scratch = c.lane_scratch(lane);
      const std::uint8_t *from = x + image * image_.pixels() * image_.pixel + channel;
      for (std::ptrdiff_t i = 0; i < std::min(over_.apart[0], y_image_.h); ++i)
        for (std::ptrdiff_t j = 0; j < std::min(over_.apart[1], y_image_.w); ++j) {
          const Sieve rows(over_.apart[0], over_.window.pad[0], i), columns(over_.apart[1], over_.window.pad[1], j);
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
  DepthwiseStep(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                const QuantizedRange &range, const ops::Clamp &clamp, Isa isa)
      : kernel_(kernels::choose(kernels::depthwise_kernels(), isa)),
        over_(window),
        places_(places(kernel_, over_.window, w.groups)),
        x_(x.slot),
        image_(*as_image(x.form.shape, x.form.strides)),
        y_image_(*as_image(y.form.shape, y.form.strides)),
        result_(kernel_, y.form.dtype, range, clamp) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.slot};
    writes = {y.slot};
    macs = image_.n * window.outputs_count() * image_.c * static_cast<std::int64_t>(w.k);
  }

  std::size_t kernel_bytes() const { return round_up(kernel_.scratch_bytes(over_.window), kAlignment); }

  /// The pixels of an image, which begins at `from`, that these outputs read.
  void sift(kernels::DepthwiseArgs &args, const Sieve &rows, const Sieve &columns, const std::uint8_t *from) const {
    const std::ptrdiff_t row = image_.w * image_.pixel;
    args.window = over_.window;
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
  SiftedWindow over_;
  std::vector<std::size_t> places_;  ///< of groups in what is packed
  PackedPtr packed_;                 ///< or, where a grid is known only in the run:
  std::optional<RunPack> run_pack_;
  SlotId x_;
  Image image_, y_image_;
  Result result_;
  std::uint8_t outside_ = 0;
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

std::unique_ptr<TailedStep> make_dynamic_depthwise(const DynamicOperand &x, const Edge &y, const ops::Window &window,
                                                   const LinearWeights &w, const ops::Clamp &clamp, Isa isa,
                                                   const PackCache &cache) {
  return std::make_unique<DepthwiseStep>(x, y, window, w, clamp, isa, cache);
}

}  // namespace qtn::runtime
