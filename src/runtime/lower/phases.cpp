// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/phases.hpp"

#include <algorithm>
#include <numeric>

#include "runtime/lower/vectors.hpp"

namespace qtn::runtime {
namespace {

using Dims = ops::Window::Dims;

/// Those of a product for all: a window of 1024 with hops of 256 has 256, an image that becomes 32 times as large 1024.
constexpr std::int64_t kMostShared = 4096;

/// How many times the taps of the weight such a product may have, with its zeros.
constexpr std::int64_t kMostFilling = 4;

/// The pixel of x that output 0 of a phase reads by its first tap.
std::int64_t first_read(const Phase &phase, std::size_t axis) {
  return phase.skipped[axis] - phase.window.pad_begin[axis];
}

/// Lets output 0 of a phase begin at that pixel: outputs in front of it where that is further right.
void read_from(Phase &phase, std::size_t axis, std::int64_t first) {
  phase.window.pad_begin[axis] = std::max<std::int64_t>(0, -first);
  phase.skipped[axis] = std::max<std::int64_t>(0, first);
  phase.window.out[axis] = phase.count[axis] + phase.skipped[axis];
}

void settle_pads(ops::Window &w) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    w.pad_end[axis] = std::max<std::int64_t>(
        0, w.out[axis] + (w.kernel[axis] - 1) * w.dilation[axis] - w.in[axis] - w.pad_begin[axis]);
}

/// The tap of the weight that a phase reads where a window over the taps of several reads its i-th.
std::optional<std::int64_t> tap_at(const Phase &phase, const Phase &all, std::size_t axis, std::int64_t i) {
  const std::vector<std::int64_t> &taps = phase.taps[axis];
  if (taps.empty()) return std::nullopt;
  const std::int64_t own = i + first_read(all, axis) - first_read(phase, axis);
  if (own < 0 || own >= static_cast<std::int64_t>(taps.size())) return std::nullopt;
  return taps[static_cast<std::size_t>(own)];
}

/// Output r + q * stride reads x at q + (r + pad - tap * dilation) / stride, for the taps where that is whole.
void place(const ops::Window &t, std::size_t axis, std::int64_t r, Phase &phase) {
  const std::int64_t stride = t.stride[axis], dilation = t.dilation[axis], from = r + t.pad_begin[axis];
  ops::Window &w = phase.window;
  std::vector<std::int64_t> &taps = phase.taps[axis];
  for (std::int64_t tap = t.kernel[axis]; tap-- > 0;)
    if ((from - tap * dilation) % stride == 0) taps.push_back(tap);
  const std::int64_t first = taps.empty() ? 0 : (from - taps[0] * dilation) / stride;
  w.in[axis] = t.out[axis];
  w.kernel[axis] = std::max<std::int64_t>(1, static_cast<std::int64_t>(taps.size()));
  w.stride[axis] = 1;
  w.dilation[axis] = taps.size() > 1 ? dilation / std::gcd(stride, dilation) : 1;
  phase.at[axis] = r;
  phase.count[axis] = (t.in[axis] - r + stride - 1) / stride;
  read_from(phase, axis, first);
  phase.residue = phase.residue * static_cast<std::size_t>(stride) + static_cast<std::size_t>(from % stride);
}

/// Outputs that no tap falls on are the bias: one tap of zeros.
void read_nothing(Phase &phase) {
  phase.taps = {};
  phase.window.kernel = phase.window.dilation = {1, 1, 1};
  phase.window.pad_begin = phase.skipped = {0, 0, 0};
  phase.window.out = phase.count;
}

/// Products of single pixels go over all of x at once.
void widen_to_image(ops::Window &w) {
  const Dims ones{1, 1, 1}, zeros{0, 0, 0};
  if (w.kernel != ones || w.pad_begin != zeros) return;
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (w.out[axis] > w.in[axis]) return;
  w.out = w.in;
}

}  // namespace

std::optional<std::vector<Phase>> phases_of(const ops::Window &transposed) {
  Dims counts;
  std::int64_t all = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (transposed.stride[axis] > kMostShared) return std::nullopt;
    counts[axis] = std::min(transposed.stride[axis], transposed.in[axis]);
    all *= counts[axis];
  }
  if (all > kMostShared) return std::nullopt;
  std::vector<Phase> phases;
  for (std::int64_t i = 0; i < all; ++i) {
    Phase phase{};
    phase.window.rank = 3;
    place(transposed, 0, i / (counts[1] * counts[2]), phase);
    place(transposed, 1, i / counts[2] % counts[1], phase);
    place(transposed, 2, i % counts[2], phase);
    ops::Window &w = phase.window;
    const bool reads =
        std::none_of(phase.taps.begin(), phase.taps.end(), [](const auto &taps) { return taps.empty(); });
    if (!reads) read_nothing(phase);
    widen_to_image(w);
    settle_pads(w);
    phases.push_back(std::move(phase));
  }
  return phases;
}

bool share_product(const ops::Window &transposed, std::span<const Phase> phases, std::int64_t groups,
                   std::int64_t filters) {
  std::int64_t strides = 1, own = 0;
  for (const std::int64_t stride : transposed.stride) strides *= stride;
  if (groups != 1 || strides == 1 || static_cast<std::int64_t>(phases.size()) != strides) return false;
  for (const Phase &phase : phases) {
    if (phase.window.dilation != Dims{1, 1, 1}) return false;
    own += phase.window.taps_count() * vectors_of(filters);
  }
  const std::int64_t taps = joined(phases).window.taps_count();
  if (phases.size() > kMostPhases) return taps * strides <= kMostFilling * transposed.taps_count();
  return taps * vectors_of(strides * filters) < own;
}

Phase joined(std::span<const Phase> phases) {
  Phase all = phases[0];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::int64_t first = 0, last = 0;
    bool found = false;
    for (const Phase &phase : phases) {
      all.count[axis] = std::max(all.count[axis], phase.count[axis]);
      if (phase.taps[axis].empty()) continue;
      const std::int64_t begin = first_read(phase, axis), end = begin + phase.window.kernel[axis] - 1;
      first = found ? std::min(first, begin) : begin;
      last = found ? std::max(last, end) : end;
      found = true;
    }
    all.window.kernel[axis] = last - first + 1;
    all.window.dilation[axis] = 1;
    read_from(all, axis, first);
  }
  widen_to_image(all.window);
  settle_pads(all.window);
  return all;
}

namespace {

/// Filters [groups * in][filters][taps] as [groups][phases][filters][taps of all][in], zeros where a phase has no tap.
template <class T>
Tensor phase_filters(const Tensor &weight, std::size_t groups, std::span<const Phase> phases, const Phase &all) {
  const auto filters = static_cast<std::size_t>(weight.dim(1)), count = groups * filters * phases.size();
  const std::size_t in = static_cast<std::size_t>(weight.dim(0)) / groups, rank = weight.rank();
  const auto length = [&](std::size_t back) { return rank >= 2 + back ? weight.dim(rank - back) : 1; };
  const Dims lengths{length(2), length(1), length(3)};
  const auto all_taps = static_cast<std::size_t>(element_count(weight.shape(), 2, rank));
  const std::size_t k = static_cast<std::size_t>(all.window.taps_count()) * in;
  Tensor filters_of_phases(weight.dtype(), Shape{static_cast<std::int64_t>(count * k)});
  T *to = filters_of_phases.as<T>();
  std::fill_n(to, count * k, T(0));
  const auto *from = weight.as<const T>();
  for (std::size_t p = 0; p < phases.size(); ++p) {
    std::size_t t = 0;  // in the order of gathered rows
    const Dims &kernel = all.window.kernel;
    for (std::int64_t z = 0; z < kernel[2]; ++z)
      for (std::int64_t r = 0; r < kernel[0]; ++r)
        for (std::int64_t c = 0; c < kernel[1]; ++c, ++t) {
          const auto depth = tap_at(phases[p], all, 2, z), row = tap_at(phases[p], all, 0, r),
                     column = tap_at(phases[p], all, 1, c);
          if (!depth || !row || !column) continue;
          const auto tap = static_cast<std::size_t>((*depth * lengths[0] + *row) * lengths[1] + *column);
          for (std::size_t group = 0; group < groups; ++group)
            for (std::size_t f = 0; f < filters; ++f)
              for (std::size_t i = 0; i < in; ++i)
                to[((group * phases.size() + p) * filters + f) * k + t * in + i] =
                    from[((group * in + i) * filters + f) * all_taps + tap];
        }
  }
  return filters_of_phases;
}

}  // namespace

LinearWeights phase_weights(const graph::Graph &g, const graph::Node &node, std::span<const Phase> phases,
                            const Phase &all) {
  const Tensor weight = to_plain(g.value(node.inputs[1]).constant);
  const auto filters = static_cast<std::size_t>(weight.dim(1));
  LinearWeights w;
  w.groups = static_cast<std::size_t>(node.attrs.get_int("group", 1));
  w.out = filters * phases.size();
  w.taps = static_cast<std::size_t>(all.window.taps_count());
  w.k = w.taps * static_cast<std::size_t>(weight.dim(0)) / w.groups;
  w.weight = Lazy<Tensor>::by([weight, all, groups = w.groups, some = std::vector(phases.begin(), phases.end())] {
    return phase_filters<std::int8_t>(weight.to_contiguous(), groups, some, all);
  });
  return w;
}

RealWeights real_phase_weights(const Tensor &weight, const Tensor &bias, std::int64_t groups,
                               std::span<const Phase> phases, const Phase &all) {
  const auto filters = static_cast<std::size_t>(weight.dim(1));
  RealWeights w;
  w.groups = static_cast<std::size_t>(groups);
  w.out = filters * phases.size();
  w.k = static_cast<std::size_t>(all.window.taps_count() * weight.dim(0)) / w.groups;
  w.weight = phase_filters<float>(weight, w.groups, phases, all);
  if (!bias.has_data()) return w;
  w.bias = Tensor(QTN_FLOAT32, Shape{static_cast<std::int64_t>(w.groups * w.out)});
  for (std::size_t o = 0; o < w.groups * w.out; ++o)
    w.bias.as<float>()[o] = bias.as<const float>()[o / w.out * filters + o % filters];
  return w;
}

}  // namespace qtn::runtime
