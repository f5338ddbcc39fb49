// SPDX-License-Identifier: Apache-2.0
#include "kernels/winograd/winograd.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

using kernels::WinogradDepth;
using kernels::WinogradKernel;

// What a block of rows needs in scratch stays in the second level of cache; but so many tiles, of four outputs, share what
// passes by of the weights.
constexpr std::size_t kBlockBytes = 128 << 10, kFewestTiles = 24;

// So few tasks are cut by channels of the outputs, too, of which each has so many at least: what it reads is transformed
// again for each.
constexpr std::size_t kFewTasks = 4, kFewestOutputs = 32;

// Fewer outputs leave most rows of a tile empty.
constexpr std::int64_t kFewestPixels = 5;

// Fewer channels fill up vectors less than half.
constexpr std::size_t kFewestChannels = 16;

constexpr std::size_t kMostPlanes = 8;

/// Packs of gathered rows, and of runs of three pixels and more, have other numbers.
constexpr std::size_t kForm = 1;

bool is_3x3(const ops::Window &w) {
  for (const std::size_t axis : {0, 1})
    if (w.kernel[axis] != 3 || w.stride[axis] != 1 || w.dilation[axis] != 1 || w.out[axis] < kFewestPixels)
      return false;
  return true;
}

WinogradDepth depth_of(const ops::Window &window, const LinearWeights &w) {
  return {static_cast<std::size_t>(window.kernel[2]), w.k / w.taps};
}

/// A kernel of that instruction set; another one would not be faster than the products that there are for `isa`.
const WinogradKernel *kernel_of(const ops::Window &window, const LinearWeights &w, Isa isa) {
  if (!is_3x3(window) || w.out < kFewestChannels) return nullptr;
  const WinogradDepth depth = depth_of(window, w);
  if (depth.planes > kMostPlanes || depth.channels < kFewestChannels) return nullptr;
  if (depth.planes * depth.channels > WinogradKernel::kMostChannels) return nullptr;
  for (const WinogradKernel &kernel : kernels::winograd_kernels())
    if (kernel.isa == isa) return &kernel;
  return nullptr;
}

PackedWeights pack(const WinogradKernel &kernel, const LinearWeights &w, WinogradDepth depth) {
  PackedWeights packed;
  const std::size_t each = round_up(kernel.packed_bytes(w.out, depth), kAlignment);
  packed.bytes = AlignedBuffer(each * w.groups);
  for (std::size_t i = 0; i < w.groups; ++i) {
    const std::size_t first = i * w.out;
    packed.offsets.push_back(i * each);
    kernel.pack(packed.bytes.data() + i * each,
                {w.filter(first), w.bias.data() + first, w.multiplier.data() + first, w.out, depth});
  }
  return packed;
}

/// Rows or columns of outputs in blocks of whole tiles, the last one of which may have one more.
class Blocks {
 public:
  Blocks() = default;
  Blocks(std::int64_t outputs, std::size_t tiles)
      : outputs_(outputs), count_(ceil_div(static_cast<std::size_t>(outputs / 2), tiles)) {}

  std::size_t count() const { return count_; }
  /// Where the block begins, or the one before it ends.
  std::int64_t begin(std::size_t block) const {
    const std::size_t tiles = static_cast<std::size_t>(outputs_ / 2);
    return block == count_ ? outputs_ : static_cast<std::int64_t>(block * tiles / count_ * 2);
  }
  std::int64_t most() const {
    return 2 * static_cast<std::int64_t>(ceil_div(static_cast<std::size_t>(outputs_ / 2), count_)) + outputs_ % 2;
  }

 private:
  std::int64_t outputs_ = 0;
  std::size_t count_ = 1;
};

class WinogradStep final : public TailedStep {
 public:
  WinogradStep(const WinogradKernel &of, const Edge &x, const Edge &y, const ops::Window &window,
               const LinearWeights &w, const QuantizedRange &range, const ops::Clamp &clamp, const PackCache &cache)
      : kernel_(of),
        image_(*as_image(x.form.shape, x.form.strides)),
        y_image_(*as_image(y.form.shape, y.form.strides)),
        x_(x.slot),
        element_(dtype_size(y.form.dtype)),
        window_(window),
        groups_(w.groups),
        out_(w.out),
        packed_(cache(kForm, [&] { return pack(kernel_, w, depth_of(window, w)); })) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.slot};
    writes = {y.slot};
    macs = image_.n * window.outputs_count() * static_cast<std::int64_t>(w.groups * w.out * w.k);
    args_.height = window.in[0];
    args_.width = image_.w;
    args_.x_pixel = image_.pixel;
    args_.x_row = image_.w * image_.pixel;
    args_.pad[0] = window.pad_begin[0];
    args_.pad[1] = window.pad_begin[1];
    args_.outside = static_cast<std::uint8_t>(x.form.quantizer->zero_point());
    args_.depth = depth_of(window, w);
    args_.range = range;
    args_.lo = clamp.lo;
    args_.hi = clamp.hi;
    cut();
  }

  bool spread_output(std::ptrdiff_t pixel) override {
    y_image_.pixel = pixel;
    return true;
  }

  std::size_t lane_bytes() const override { return kernel_.scratch_bytes(rows_.most(), columns_.most(), args_.depth); }

  void run(const Context &c) const override {
    for_chunks(c, planes() * rows_.count() * columns_.count() * groups_ * parts_, static_cast<std::size_t>(macs) / 128,
               [&](std::size_t lane, std::size_t task) { run_task(c, lane, task); });
  }

 private:
  /// Those of the outputs, of all images.
  std::size_t planes() const { return static_cast<std::size_t>(image_.n * window_.out[2]); }

  /// What a plane of the outputs reads.
  void find_planes(std::array<const std::uint8_t *, kMostPlanes> &planes, const std::uint8_t *x,
                   std::int64_t of) const {
    const std::int64_t first = of % window_.out[2] * window_.stride[2] - window_.pad_begin[2];
    x += of / window_.out[2] * image_.pixels() * image_.pixel;
    for (std::size_t i = 0; i < args_.depth.planes; ++i) {
      const std::int64_t plane = first + static_cast<std::int64_t>(i) * window_.dilation[2];
      const bool inside = plane >= 0 && plane < window_.in[2];
      planes[i] = inside ? x + plane * window_.in[0] * args_.x_row : nullptr;
    }
  }

  void run_task(const Context &c, std::size_t lane, std::size_t task) const {
    const auto next = [&task](std::size_t count) { return std::exchange(task, task / count) % count; };
    const std::size_t first = next(parts_) * outputs_, group = next(groups_);
    const std::size_t across = next(columns_.count()), down = next(rows_.count());
    const auto plane = static_cast<std::int64_t>(task);
    const std::size_t column = (group * out_ + first) * element_;
    auto *y = c.tensor(output()).as<std::uint8_t>();  // bytes, whatever they are of
    std::array<const std::uint8_t *, kMostPlanes> read;
    find_planes(read, c.tensor(x_).as<const std::uint8_t>() + group * args_.depth.channels, plane);
    const std::ptrdiff_t pixel = y_image_.pixel * static_cast<std::ptrdiff_t>(element_);
    const std::int64_t above = plane * window_.out[0] * y_image_.w;
    kernels::WinogradArgs args = args_;
    args.planes = read.data();
    args.first_row = rows_.begin(down);
    args.rows = rows_.begin(down + 1) - args.first_row;
    args.first_column = columns_.begin(across);
    args.columns = columns_.begin(across + 1) - args.first_column;
    args.n = std::min(outputs_, out_ - first);
    args.packed = packed_->bytes.data() + packed_->offsets[group] + kernel_.packed_bytes(first, args.depth);
    args.y = y + above * pixel + column;
    args.y_pixel = y_image_.pixel;
    args.y_row = y_image_.w * y_image_.pixel;
    args.scratch = c.lane_scratch(lane);
    element_ == sizeof(float) ? kernel_.run_f32(args) : kernel_.run_u8(args);
    // Whole rows are one block.
    const std::ptrdiff_t together = columns_.count() == 1 ? args.rows : 1;
    for (std::ptrdiff_t row = args.first_row; row < args.first_row + args.rows; row += together) {
      const std::int64_t pixels = above + row * y_image_.w + args.first_column;
      run_tails(c, {y + pixels * pixel + column, pixel, static_cast<std::size_t>(pixels),
                    static_cast<std::size_t>(together * args.columns), column, args.n * element_, y});
    }
  }

  void cut() {
    const auto bytes = [&](std::size_t tiles) {
      return kernel_.scratch_bytes(2, 2 * static_cast<std::ptrdiff_t>(tiles), args_.depth);
    };
    const std::size_t tile = (bytes(2 * kFewestTiles) - bytes(kFewestTiles)) / kFewestTiles;
    const std::size_t tiles = std::max(kFewestTiles, kBlockBytes / tile);
    columns_ = Blocks(y_image_.w, tiles);
    rows_ = Blocks(window_.out[0], std::max<std::size_t>(1, 2 * tiles / static_cast<std::size_t>(columns_.most())));
    const std::size_t tasks = planes() * rows_.count() * columns_.count() * groups_;
    const std::size_t most = std::max<std::size_t>(1, out_ / kFewestOutputs);
    outputs_ = round_up(ceil_div(out_, std::min(ceil_div(kFewTasks, tasks), most)), kernel_.nr);
    parts_ = ceil_div(out_, outputs_);
  }

  const WinogradKernel &kernel_;
  Image image_, y_image_;
  SlotId x_;
  std::size_t element_;  ///< bytes, of y
  ops::Window window_;
  std::size_t groups_, out_;  ///< out: of a group
  PackedPtr packed_;
  kernels::WinogradArgs args_{};  ///< what all tasks share
  Blocks rows_, columns_;
  std::size_t parts_ = 0, outputs_ = 0;  ///< a part has so many outputs
};

}  // namespace

StepPtr make_winograd_conv(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                           const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  const WinogradKernel *kernel = kernel_of(window, w, isa);
  if (!kernel) return nullptr;
  return std::make_unique<WinogradStep>(*kernel, x, y, window, w, range, clamp, cache);
}

}  // namespace qtn::runtime
