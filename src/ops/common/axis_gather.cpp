// SPDX-License-Identifier: Apache-2.0
#include "ops/common/axis_gather.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "base/memory.hpp"
#include "base/parallel.hpp"

namespace qtn::ops {
namespace {

bool is_whole(const std::vector<std::int64_t> &source, std::int64_t size) {
  for (std::size_t i = 0; i < source.size(); ++i)
    if (source[i] != static_cast<std::int64_t>(i)) return false;
  return static_cast<std::int64_t>(source.size()) == size;
}

/// Each element of the axis twice.
bool is_doubled(const std::vector<std::int64_t> &source, std::int64_t size) {
  for (std::size_t i = 0; i < source.size(); ++i)
    if (source[i] != static_cast<std::int64_t>(i / 2)) return false;
  return static_cast<std::int64_t>(source.size()) == 2 * size;
}

template <class T>
class Gather {
 public:
  Gather(const Tensor &y, const Tensor &x, const AxisSources &sources, T fill)
      : y_(y), x_(x), sources_(sources), fill_(fill), depth_(sources.size()) {
    // As y lies in memory: the axes of images with their channels last, too.
    std::iota(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(depth_), std::size_t{0});
    std::sort(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(depth_), [&](std::size_t a, std::size_t b) {
      return y.strides()[a] != y.strides()[b] ? y.strides()[a] > y.strides()[b] : a < b;
    });
    // The last axes are one where all of their elements follow one another on both sides.
    for (; depth_ > 0; --depth_) {
      const std::size_t axis = axes_[depth_ - 1];
      if (y.strides()[axis] != block_ || x.strides()[axis] != block_ || !is_whole(sources[axis], x.dim(axis))) break;
      block_ *= x.dim(axis);
    }
    std::int64_t inner = block_;
    for (std::size_t level = depth_; level-- > 0;) {
      const std::size_t axis = axes_[level];
      without_gaps_[level] = inner >= 0 && y.strides()[axis] == inner;
      inner = without_gaps_[level] ? inner * static_cast<std::int64_t>(sources[axis].size()) : -1;
    }
    if (depth_ == 0) return;
    const std::size_t last = axes_[depth_ - 1];
    find_runs(last);
    pairs_ = y.strides()[last] == 1 && x.strides()[last] == 1 && is_doubled(sources[last], x.dim(last));
  }

  void run(T *to, const T *from) const {
    if (depth_ == 0) return copy(to, from, block_);
    constexpr std::size_t kElements = 1 << 15;  // for a thread
    std::size_t level = 0;                      // the outermost that has something to share
    while (level + 1 < depth_ && sources_[axes_[level]].size() == 1 && sources_[axes_[level]][0] == 0) ++level;
    const std::size_t lanes = ceil_div(static_cast<std::size_t>(y_.count()), kElements);
    parallel_ranges(lanes, sources_[axes_[level]].size(),
                    [&](std::size_t begin, std::size_t end, std::size_t) { run(level, begin, end, to, from); });
  }

 private:
  /// Positions [begin, end) of the axis of a level; `to` and `from` are where the axis begins.
  void run(std::size_t level, std::size_t begin, std::size_t end, T *to, const T *from) const {
    const std::size_t axis = axes_[level];
    const std::int64_t to_step = y_.strides()[axis], from_step = x_.strides()[axis];
    const std::vector<std::int64_t> &source = sources_[axis];
    const bool last = level + 1 == depth_, whole = begin == 0 && end == source.size();
    if (last && whole && run_count_ > 0) return copy_runs(to, from);
    if (last && whole && pairs_ && from) return copy_pairs(to, from, end / 2);
    to += static_cast<std::int64_t>(begin) * to_step;
    if (last && block_ == 1 && from) {
      for (std::size_t i = begin; i < end; ++i, to += to_step)
        *to = source[i] < 0 ? fill_ : from[source[i] * from_step];
      return;
    }
    for (std::size_t i = begin; i < end; ++i, to += to_step) {
      const T *part = from && source[i] >= 0 ? from + source[i] * from_step : nullptr;
      if (i > begin && source[i] == source[i - 1] && without_gaps_[level])
        copy(to, to - to_step, to_step);
      else if (last)
        copy(to, part, block_);
      else
        run(level + 1, 0, sources_[axes_[level + 1]].size(), to, part);
    }
  }

  /// Elements of the last axis that follow one another on both sides, or are all filled.
  struct Run {
    std::int64_t source, count;  ///< in elements
  };

  /// Not kept where they are many, or where the last axis has gaps.
  void find_runs(std::size_t axis) {
    if (y_.strides()[axis] != block_ || x_.strides()[axis] != block_) return;
    const std::vector<std::int64_t> &source = sources_[axis];
    std::size_t count = 0;
    for (std::size_t i = 0; i < source.size(); ++i) {
      const bool follows =
          i > 0 && (source[i] < 0 ? source[i - 1] < 0 : source[i - 1] >= 0 && source[i] == source[i - 1] + 1);
      if (!follows && count == runs_.size()) return;
      if (!follows) runs_[count++] = {source[i] < 0 ? -1 : source[i] * block_, 0};
      runs_[count - 1].count += block_;
    }
    run_count_ = count;
  }

  void copy_runs(T *to, const T *from) const {
    for (const Run &r : std::span(runs_).first(run_count_)) {
      copy(to, from && r.source >= 0 ? from + r.source : nullptr, r.count);
      to += r.count;
    }
  }

  static void copy_pairs(T *to, const T *from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[2 * i] = to[2 * i + 1] = from[i];
  }

  void copy(T *to, const T *from, std::int64_t count) const {
    if (from)
      std::copy_n(from, count, to);
    else
      std::fill_n(to, count, fill_);
  }

  const Tensor &y_, &x_;
  const AxisSources &sources_;
  T fill_;
  std::array<std::size_t, kMaxRank> axes_{};   ///< the outermost first
  std::array<bool, kMaxRank> without_gaps_{};  ///< of the axis of a level and those inside of it, in y
  std::size_t depth_;
  std::int64_t block_ = 1;
  std::array<Run, 8> runs_{};
  std::size_t run_count_ = 0;
  bool pairs_ = false;  ///< the last axis is each element twice
};

template <class T>
void gather(const Tensor &y, const Tensor &x, const AxisSources &sources, const void *fill) {
  const T *from = x.as<const T>();
  Gather<T>(y, x, sources, fill ? *static_cast<const T *>(fill) : T()).run(y.as<T>(), x.count() == 0 ? nullptr : from);
}

struct Scatter {
  const Tensor &dx, &dy;
  const AxisSources &sources;

  void run(std::size_t axis, float *to, const float *from) const {
    if (axis == sources.size()) {
      *to += *from;
      return;
    }
    const std::vector<std::int64_t> &source = sources[axis];
    const bool last = axis + 1 == sources.size();
    for (std::size_t i = 0; i < source.size(); ++i, from += dy.strides()[axis]) {
      if (source[i] < 0) continue;
      float *at = to + source[i] * dx.strides()[axis];
      last ? void(*at += *from) : run(axis + 1, at, from);
    }
  }
};

}  // namespace

void scatter_axes(const Tensor &dx, const Tensor &dy, const AxisSources &sources) {
  float *to = dx.as<float>();
  std::fill_n(to, dx.count(), 0.0f);
  if (dy.count() == 0) return;
  std::size_t whole = 0;
  while (whole < sources.size() && is_whole(sources[whole], dx.dim(whole))) ++whole;
  const std::int64_t planes = element_count(dx.shape(), 0, whole);
  parallel_for(static_cast<std::size_t>(planes), [&](std::size_t index) {
    const auto plane = static_cast<std::int64_t>(index);
    Scatter{dx, dy, sources}.run(whole, to + plane * (dx.count() / planes),
                                 dy.as<const float>() + plane * (dy.count() / planes));
  });
}

void gather_axes(const Tensor &y, const Tensor &x, const AxisSources &sources, const void *fill) {
  if (y.count() == 0) return;
  switch (dtype_size(y.dtype())) {
    case 1:
      return gather<std::uint8_t>(y, x, sources, fill);
    case 2:
      return gather<std::uint16_t>(y, x, sources, fill);
    case 4:
      return gather<std::uint32_t>(y, x, sources, fill);
    default:
      return gather<std::uint64_t>(y, x, sources, fill);
  }
}

}  // namespace qtn::ops
