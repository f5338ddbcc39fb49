// SPDX-License-Identifier: Apache-2.0
#include "ops/common/conv_planes.hpp"

#include <optional>

#include "kernels/real/real.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/lane_tasks.hpp"
#include "ops/common/plane_copy.hpp"

namespace qtn::ops {
namespace {

/// Elements of the copies that a task works on: a cache holds them.
constexpr std::int64_t kCopies = 1 << 16;
constexpr std::int64_t kLanes = kernels::kSumLanes;

/// Kernels read less than this past the copies, and do not use it.
std::int64_t slack_of(const PlaneCopy &copy) { return copy.size[1] + kernels::kSumLanes; }

/// A convolution that goes from one tensor to another: channels of a group, elements of a plane, and steps in the
/// weights.
struct Direction {
  std::int64_t images, groups;
  std::int64_t from_channels, from_size, from_step;
  std::int64_t to_channels, to_size, to_step;
  std::int64_t to_pitch;  ///< elements of a row
};

Direction forward_direction(const Convolution &conv) {
  return {conv.images,
          conv.groups,
          conv.channels / conv.groups,
          conv.in_size(),
          conv.window.taps_count(),
          conv.filters / conv.groups,
          conv.out_size(),
          conv.patch(),
          conv.window.out[2]};
}

Direction backward_direction(const Convolution &conv) {
  return {conv.images,
          conv.groups,
          conv.filters / conv.groups,
          conv.out_size(),
          conv.patch(),
          conv.channels / conv.groups,
          conv.in_size(),
          conv.window.taps_count(),
          conv.window.in[2]};
}

/// Filters that a kernel takes at once: so many, and of what is left a power of two.
constexpr std::int64_t kBlock = 8;
std::int64_t block_of(std::int64_t left) { return left >= kBlock ? kBlock : left >= 4 ? 4 : left >= 2 ? 2 : 1; }

/// Whether gaps between rows of outputs cost more than further copies do, of which a group makes use for all its
/// filters.
bool worth_flush(std::int64_t width, std::int64_t filters) {
  constexpr std::int64_t kWidest = 12, kFilters = 16;
  return width <= kWidest && filters >= kFilters;
}

/// As many rows of outputs as kCopies allow, but not so few that copying what they share costs more than they do.
void cut(Scan &scan, std::int64_t channels) {
  const std::int64_t halo = scan.copy.size[0] - scan.rows;
  const std::int64_t row = scan.copy.size[1] * static_cast<std::int64_t>(scan.copy.first.size()) * channels;
  scan.cut(std::clamp(kCopies / std::max<std::int64_t>(row, 1) - halo, std::min(scan.rows, 2 * halo + 4), scan.rows));
}

/// For each channel's taps, where output (0, 0) finds them in the copies of all channels.
std::vector<std::ptrdiff_t> offsets_of(const Pass &pass, const PlaneCopy &copy, std::int64_t channels) {
  std::vector<std::ptrdiff_t> offsets;
  for (std::int64_t c = 0; c < channels; ++c)
    for (const Pass::Tap &tap : pass.taps)
      offsets.push_back(c * copy.count() + tap.part * copy.part_size() + tap.row * copy.size[1] + tap.column);
  return offsets;
}

/// How outputs of a pass are counted: without the gaps between rows of the copies where kernels can leave these out.
class Lines {
 public:
  Lines(std::int64_t width, std::int64_t pitch)
      : even_(width % kLanes == 0), length_(even_ ? width : pitch), pitch_(pitch) {}

  bool even() const { return even_; }
  /// From the beginning of a row to that of the next.
  std::int64_t length() const { return length_; }
  /// Where copies have the first taps of output `begin` and of those behind it.
  const float *at(const float *copies, std::int64_t begin) const {
    return copies + (even_ ? begin / length_ * pitch_ : begin);
  }
  kernels::Rows rows(std::int64_t begin) const {
    if (!even_) return {std::numeric_limits<std::size_t>::max(), 0};
    return {static_cast<std::size_t>(length_), static_cast<std::size_t>(pitch_),
            static_cast<std::size_t>(begin % length_)};
  }

 private:
  bool even_;
  std::int64_t length_, pitch_;
};

/// Sums of outputs [begin, begin + count) of a pass, counted through rows of `pitch`, to their places in a plane, or
/// added to what is there.
void store(const Pass &pass, std::int64_t first_row, std::int64_t pitch, std::int64_t begin, std::int64_t count,
           const float *sums, float *plane, std::int64_t plane_pitch, bool adds) {
  const auto copy = kernels::real_kernel().copy;
  const auto place = [&](std::int64_t row, std::int64_t column) {
    return plane + (pass.first[0] + (first_row + row) * pass.step[0]) * plane_pitch + pass.first[1] +
           column * pass.step[1];
  };
  for (std::int64_t at = begin, rows; at < begin + count; at = (at / pitch + rows) * pitch) {
    const std::int64_t column = at % pitch, left = begin + count - at;
    // Whole rows together; the first and the last may be a part of one.
    rows = column == 0 ? std::max<std::int64_t>(1, left / pitch) : 1;
    const std::int64_t length = std::min({left, pass.count[1] - column, pass.count[1]});
    if (length <= 0) continue;
    copy({sums + (at - begin), static_cast<std::size_t>(pitch), 1, place(at / pitch, column),
          static_cast<std::size_t>(pass.step[0] * plane_pitch), static_cast<std::size_t>(pass.step[1]),
          static_cast<std::size_t>(rows), static_cast<std::size_t>(length), adds});
  }
}

class Convolver {
 public:
  Convolver(const Direction &d, Scan scan) : d_(d), scan_(std::move(scan)) {
    std::int64_t most = 0;
    for (const Pass &pass : scan_.passes) most = std::max(most, pass.count[0]);
    cut(scan_, d.from_channels);
    bands_ = (most + scan_.rows - 1) / scan_.rows;
    for (const Pass &pass : scan_.passes) {
      passes_.push_back({offsets_of(pass, scan_.copy, d.from_channels), packed_size_});
      packed_size_ += d.groups * d.to_channels * static_cast<std::int64_t>(passes_.back().offsets.size());
    }
  }

  void run(const float *from, const float *weight, float *to, bool adds, Scratch &scratch) const {
    const std::int64_t copies = d_.from_channels * scan_.copy.count() + slack_of(scan_.copy), size = copies + kOutputs;
    float *memory = scratch_tensor(scratch, {packed_size_ + size * current_threads()}).as<float>();
    for (std::size_t pass = 0; pass < passes_.size(); ++pass) pack(pass, weight, memory);
    std::fill_n(memory + packed_size_, size * current_threads(), 0.0f);
    for_tasks(d_.images * d_.groups * bands_, memory + packed_size_, size, [&](std::int64_t task, float *lane) {
      const std::int64_t image_group = task / bands_, first_row = task % bands_ * scan_.rows;
      const float *planes = from + image_group * d_.from_channels * d_.from_size;
      scan_.copy.run(planes, d_.from_size, d_.from_channels, first_row, lane, scan_.copy.count());
      for (std::size_t pass = 0; pass < passes_.size(); ++pass)
        scan(pass, image_group % d_.groups, first_row, lane, memory, lane + copies,
             to + image_group * d_.to_channels * d_.to_size, adds);
    });
  }

 private:
  /// Sums of a block of filters, in a near cache.
  static constexpr std::int64_t kOutputs = 1536;

  struct Prepared {
    std::vector<std::ptrdiff_t> offsets;
    std::int64_t packed;  ///< where its weights begin
  };

  /// The packed weights of a pass for filters of a group from `filter` on.
  std::int64_t packed_at(std::size_t pass, std::int64_t group, std::int64_t filter) const {
    const auto taps = static_cast<std::int64_t>(passes_[pass].offsets.size());
    return passes_[pass].packed + (group * d_.to_channels + filter) * taps;
  }

  void pack(std::size_t pass, const float *weight, float *packed) const {
    const std::int64_t group_step = std::max(d_.to_channels * d_.to_step, d_.from_channels * d_.from_step);
    const std::int64_t blocks = (d_.to_channels + kBlock - 1) / kBlock;
    parallel_for(static_cast<std::size_t>(d_.groups * blocks), [&](std::size_t task) {
      const std::int64_t group = static_cast<std::int64_t>(task) / blocks,
                         first = static_cast<std::int64_t>(task) % blocks * kBlock,
                         end = std::min(first + kBlock, d_.to_channels);
      for (std::int64_t f = first, count; f < end; f += count) {
        count = block_of(end - f);
        float *to = packed + packed_at(pass, group, f);
        for (std::int64_t c = 0; c < d_.from_channels; ++c)
          for (const Pass::Tap &tap : scan_.passes[pass].taps)
            for (std::int64_t i = 0; i < count; ++i)
              *to++ = weight[group * group_step + (f + i) * d_.to_step + c * d_.from_step + tap.weight];
      }
    });
  }

  /// One band of one pass, to the planes of an image's group.
  void scan(std::size_t index, std::int64_t group, std::int64_t first_row, const float *copies, const float *packed,
            float *sums, float *planes, bool adds) const {
    const Pass &pass = scan_.passes[index];
    const std::vector<std::ptrdiff_t> &offsets = passes_[index].offsets;
    const Lines lines(pass.count[1], scan_.copy.size[1]);
    const std::int64_t rows = std::min(scan_.rows, pass.count[0] - first_row);
    if (rows <= 0 || (adds && offsets.empty())) return;
    const std::int64_t run = (rows - 1) * lines.length() + pass.count[1], step = kOutputs / block_of(d_.to_channels);
    // Outputs that lie as they are counted need no place in between.
    const bool in_place = !adds && pass.step == Place{1, 1} && lines.length() == d_.to_pitch && run >= kLanes;
    float *first = planes + first_row * d_.to_pitch;
    for (std::int64_t begin = 0, count; begin < run; begin += count) {
      count = std::min(step, run - begin);
      // What is no whole vector is slow. Where it is written in place, some outputs before it are, once more.
      const std::int64_t whole = std::max(count, kLanes), from = in_place ? begin + count - whole : begin;
      for (std::int64_t f = 0, block; f < d_.to_channels; f += block) {
        block = block_of(d_.to_channels - f);
        kernel_.convolve({lines.at(copies, from), lines.rows(from), offsets.data(), packed + packed_at(index, group, f),
                          offsets.size(), static_cast<std::size_t>(block),
                          in_place ? first + f * d_.to_size + from : sums,
                          static_cast<std::size_t>(in_place ? d_.to_size : whole), static_cast<std::size_t>(whole)});
        for (std::int64_t i = 0; i < block && !in_place; ++i)
          store(pass, first_row, lines.length(), begin, count, sums + i * whole, planes + (f + i) * d_.to_size,
                d_.to_pitch, adds);
      }
    }
  }

  Direction d_;
  Scan scan_;
  const kernels::RealKernel &kernel_ = kernels::real_kernel();
  std::int64_t bands_ = 0, packed_size_ = 0;
  std::vector<Prepared> passes_;
};

/// The sums of the gradient with respect to the weights.
class Correlator {
 public:
  explicit Correlator(const Convolution &conv)
      : conv_(conv), channels_(conv.channels / conv.groups), filters_(conv.filters / conv.groups) {
    const Window &w = conv.window;
    scan_ = forward_scan(w, worth_flush(w.out[2], filters_));
    cut(scan_, channels_);
    bands_ = (w.out[1] + scan_.rows - 1) / scan_.rows;
    slopes_ = {{w.out[1], w.out[2]}, {scan_.rows, lines().length()}, {1, 1}, {{0, 0}}};
    positions_ = (slopes_.count() + kLanes - 1) / kLanes * kLanes;
    // Vectors of slopes that are read where they lie hold nothing else.
    const auto whole = [&](std::int64_t rows) { return rows * w.out[2] % kLanes == 0; };
    in_place_ = lines().length() == w.out[2] && whole(scan_.rows) && whole(w.out[1] % scan_.rows);
    offsets_ = offsets_of(scan_.passes[0], scan_.copy, channels_);
    together_ = bands_ > 1 ? 1
                           : std::clamp<std::int64_t>(
                                 std::min(kPositions / positions_, kFarCopies / (channels_ * scan_.copy.count())), 1,
                                 conv.images);
    // Each task copies what it reads, which few filters are not worth.
    constexpr std::int64_t kFilters = 64;
    range_ = std::max(kFilters, filters_ / kTasks);
    ranges_ = (filters_ + range_ - 1) / range_;
    units_ = (conv.images + together_ - 1) / together_ * bands_;
    parts_ = std::clamp<std::int64_t>(kTasks / (conv.groups * ranges_), 1, units_);
  }

  void run(const float *x, const float *dy, float *dw, Scratch &scratch) const {
    const std::int64_t count = conv_.filters * conv_.patch();
    const std::int64_t size =
        together_ * (channels_ * scan_.copy.count() + (in_place_ ? 0 : range_ * positions_)) + slack_of(scan_.copy);
    float *sums = scratch_tensor(scratch, {(parts_ - 1) * count + size * current_threads()}).as<float>();
    std::fill_n(sums + (parts_ - 1) * count, size * current_threads(), 0.0f);
    for_tasks(conv_.groups * ranges_ * parts_, sums + (parts_ - 1) * count, size, [&](std::int64_t task, float *lane) {
      const std::int64_t part = task % parts_, group = task / parts_ / ranges_,
                         first = task / parts_ % ranges_ * range_;
      const std::int64_t filters = std::min(range_, filters_ - first);
      float *to = (part == 0 ? dw : sums + (part - 1) * count) + (group * filters_ + first) * conv_.patch();
      std::fill_n(to, filters * conv_.patch(), 0.0f);
      for (std::int64_t unit = units_ * part / parts_; unit < units_ * (part + 1) / parts_; ++unit)
        add(unit, group, first, filters, x, dy, lane, to);
    });
    add_parts(dw, sums, parts_, count);
  }

 private:
  /// The number of sums between two additions over lanes, and of elements of the copies that they need, for a larger
  /// cache.
  static constexpr std::int64_t kPositions = 512, kFarCopies = 1 << 17;

  /// A few images, or a band of one.
  void add(std::int64_t unit, std::int64_t group, std::int64_t first, std::int64_t filters, const float *x,
           const float *dy, float *memory, float *sums) const {
    const std::int64_t image = unit / bands_ * together_, row = unit % bands_ * scan_.rows;
    const std::int64_t images = std::min(together_, conv_.images - image), index = image * conv_.groups + group;
    const std::int64_t in = conv_.in_size(), out = conv_.out_size(), width = conv_.window.out[2];
    float *slopes = memory, *copies = memory + (in_place_ ? 0 : together_ * range_ * positions_);
    const std::int64_t x_image = channels_ * scan_.copy.count();
    for (std::int64_t i = 0; i < images; ++i)
      scan_.copy.run(x + (index + i * conv_.groups) * channels_ * in, in, channels_, row, copies + i * x_image,
                     scan_.copy.count());
    const float *dys = dy + (index * filters_ + first) * out;
    std::int64_t dy_step = out, dy_image = conv_.filters * out;
    std::int64_t count = std::min(scan_.rows, conv_.window.out[1] - row) * width;
    if (in_place_) {
      dys += row * width;
    } else {
      for (std::int64_t i = 0; i < images; ++i)
        slopes_.run(dys + i * dy_image, out, filters, row, slopes + i * filters * positions_, positions_);
      dys = slopes;
      dy_step = count = positions_;
      dy_image = filters * positions_;
    }
    for (std::int64_t begin = 0; begin < count; begin += kPositions)
      kernel_.correlate({lines().at(copies, begin), lines().rows(begin), offsets_.data(), offsets_.size(),
                         static_cast<std::size_t>(x_image), dys + begin, static_cast<std::size_t>(dy_step),
                         static_cast<std::size_t>(dy_image), static_cast<std::size_t>(filters),
                         static_cast<std::size_t>(images),
                         static_cast<std::size_t>(std::min(kPositions, count - begin)), sums, offsets_.size()});
  }

  Lines lines() const { return {conv_.window.out[2], scan_.copy.size[1]}; }

  const Convolution conv_;
  std::int64_t channels_, filters_;  ///< of a group
  Scan scan_;
  PlaneCopy slopes_;  ///< in rows as outputs are counted
  bool in_place_;     ///< dy is in such rows already
  std::vector<std::ptrdiff_t> offsets_;
  std::int64_t bands_, positions_;
  std::int64_t together_;        ///< images
  std::int64_t range_, ranges_;  ///< filters of a task, and how many such
  std::int64_t units_, parts_;
  const kernels::RealKernel &kernel_ = kernels::real_kernel();
};

}  // namespace

bool fits_planes(const Convolution &conv) {
  const Window &w = conv.window;
  if (w.in[0] != 1 || w.out[0] != 1 || w.kernel[0] != 1) return false;
  if (conv.images == 0 || conv.channels == 0 || conv.filters == 0 || conv.out_size() == 0) return false;
  constexpr std::int64_t kLongest = 4, kMargin = 16;
  for (const std::size_t axis : {1, 2})
    if (w.stride[axis] > kLongest || w.pad_begin[axis] + w.pad_end[axis] > w.in[axis] + kMargin) return false;
  return true;
}

struct ConvPlanes::Parts {
  Parts(const Convolution &conv, ConvPasses passes)
      : forward(forward_direction(conv),
                forward_scan(conv.window, worth_flush(conv.window.out[2], conv.filters / conv.groups))) {
    if (passes == ConvPasses::all) gradients.emplace(conv);
  }

  struct Gradients {
    explicit Gradients(const Convolution &conv)
        : inputs(backward_direction(conv),
                 backward_scan(conv.window, worth_flush(conv.window.in[2], conv.channels / conv.groups))),
          weights(conv) {}
    Convolver inputs;
    Correlator weights;
  };

  Convolver forward;
  std::optional<Gradients> gradients;
};

ConvPlanes::ConvPlanes(const Convolution &conv, ConvPasses passes) : parts_(std::make_unique<Parts>(conv, passes)) {}
ConvPlanes::~ConvPlanes() = default;

void ConvPlanes::forward(const float *x, const float *weight, float *y, Scratch &scratch) const {
  parts_->forward.run(x, weight, y, false, scratch);
}

void ConvPlanes::input_gradient(const float *weight, const float *dy, float *dx, bool adds, Scratch &scratch) const {
  parts_->gradients->inputs.run(dy, weight, dx, adds, scratch);
}

void ConvPlanes::weight_gradient(const float *x, const float *dy, float *dw, Scratch &scratch) const {
  parts_->gradients->weights.run(x, dy, dw, scratch);
}

}  // namespace qtn::ops
