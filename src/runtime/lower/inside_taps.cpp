// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/inside_taps.hpp"

#include <algorithm>
#include <numeric>

namespace qtn::runtime {
namespace {

bool meets_image(const ops::Window &window, std::size_t axis, std::int64_t tap) {
  const ops::Span outputs = window.outputs(axis, tap);
  return std::max<std::int64_t>(0, outputs.begin) < outputs.end;
}

}  // namespace

InsideTaps::InsideTaps(const ops::Window &window) : all_(window), inside_(window) {
  for (std::size_t axis = 0; axis < window.rank; ++axis) {
    std::int64_t &first = first_[axis], &pad = inside_.pad_begin[axis], end = window.kernel[axis];
    while (end > 1 && !meets_image(window, axis, end - 1)) --end;
    for (; first + 1 < end && pad >= window.dilation[axis] && !meets_image(window, axis, first); ++first)
      pad -= window.dilation[axis];
    inside_.kernel[axis] = end - first;
    inside_.pad_end[axis] = read_padding(inside_, axis);
  }
}

/// The inner taps of filters [filters][planes][rows][columns][channels].
template <class T>
Tensor InsideTaps::inside(const Tensor &filters, std::int64_t channels) const {
  const auto &[rows, columns, planes] = inside_.kernel;
  const std::int64_t filter = all_.taps_count() * channels, run = columns * channels;
  const std::int64_t count = filter == 0 ? 0 : filters.count() / filter;  // filters over no channels have no elements
  Tensor kept(filters.dtype(), Shape{count * planes * rows * run});
  T *to = kept.as<T>();
  for (std::int64_t f = 0; f < count; ++f)
    for (std::int64_t z = first_[2]; z < first_[2] + planes; ++z)
      for (std::int64_t r = first_[0]; r < first_[0] + rows; ++r, to += run) {
        const std::int64_t tap = (z * all_.kernel[0] + r) * all_.kernel[1] + first_[1];
        std::copy_n(filters.as<const T>() + f * filter + tap * channels, run, to);
      }
  return kept;
}

LinearWeights InsideTaps::weights(const LinearWeights &all, std::int32_t zero_point) const {
  if (are_all()) return all;
  const std::int64_t channels = static_cast<std::int64_t>(all.k) / all_.taps_count();
  LinearWeights w = all;
  w.weight = inside<std::int8_t>(*all.weight, channels);
  w.taps = static_cast<std::size_t>(inside_.taps_count());
  w.k = w.taps * static_cast<std::size_t>(channels);
  w.tap_sums = inside<std::int32_t>(all.tap_sums, 1);
  w.kernel = nullptr;
  const auto sum = [](const LinearWeights &of, std::size_t o) {
    const auto *sums = of.tap_sums.as<const std::int32_t>() + o * of.taps;
    return std::accumulate(sums, sums + of.taps, std::int64_t{0});
  };
  // It is one of the sums that fit: that of activations which are zero points there, and 0 elsewhere.
  for (std::size_t o = 0; o < w.bias.size(); ++o)
    w.bias[o] = static_cast<std::int32_t>(w.bias[o] + zero_point * (sum(all, o) - sum(w, o)));
  return w;
}

RealWeights InsideTaps::weights(const RealWeights &all) const {
  if (are_all()) return all;
  const std::int64_t channels = static_cast<std::int64_t>(all.k) / all_.taps_count();
  RealWeights w = all;
  w.weight = inside<float>(all.in_order(), channels);
  w.k = static_cast<std::size_t>(inside_.taps_count() * channels);
  w.taps = 1;  // in the order that packing wants
  return w;
}

PackCache InsideTaps::cache(const PackCache &of_node) const {
  std::size_t which = 0, count = 1;
  for (std::size_t axis = 0; axis < all_.rank; ++axis) {
    const auto taps = static_cast<std::size_t>(all_.kernel[axis]);
    which = (which * taps + static_cast<std::size_t>(first_[axis])) * taps +
            static_cast<std::size_t>(inside_.kernel[axis] - 1);
    count *= taps * taps;
  }
  return part_of(of_node, which, count);
}

}  // namespace qtn::runtime
