// SPDX-License-Identifier: Apache-2.0
#include "runtime/phases.hpp"

#include <algorithm>
#include <numeric>

namespace qtn::runtime {
namespace {

using Dims = ops::Window::Dims;

/// Phases are steps of a plan. So many come of strides of 4 along three axes.
constexpr std::int64_t kMostPhases = 64;

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
  w.pad_begin[axis] = std::max<std::int64_t>(0, -first);
  phase.at[axis] = r;
  phase.count[axis] = (t.in[axis] - r + stride - 1) / stride;
  phase.skipped[axis] = std::max<std::int64_t>(0, first);
  w.out[axis] = phase.count[axis] + phase.skipped[axis];
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
void widen_to_picture(ops::Window &w) {
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
    if (transposed.stride[axis] > kMostPhases) return std::nullopt;
    counts[axis] = std::min(transposed.stride[axis], transposed.in[axis]);
    all *= counts[axis];
  }
  if (all > kMostPhases) return std::nullopt;
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
    widen_to_picture(w);
    for (std::size_t axis = 0; axis < 3; ++axis)
      w.pad_end[axis] = std::max<std::int64_t>(
          0, w.out[axis] + (w.kernel[axis] - 1) * w.dilation[axis] - w.in[axis] - w.pad_begin[axis]);
    phases.push_back(std::move(phase));
  }
  return phases;
}

LinearWeights phase_weights(const graph::Graph &g, const graph::Node &node, const Phase &phase, const Quantizer &x,
                            const Quantizer *y) {
  const graph::Value &value = g.value(node.inputs[1]);
  const Tensor weight = to_plain(value.constant).to_contiguous();
  LinearWeights w;
  w.groups = static_cast<std::size_t>(node.attrs.get_int("group", 1));
  w.out = static_cast<std::size_t>(weight.dim(1));
  const std::size_t in = static_cast<std::size_t>(weight.dim(0)) / w.groups;
  const std::size_t rank = weight.rank();
  const auto length = [&](std::size_t back) { return rank >= 2 + back ? weight.dim(rank - back) : 1; };
  const std::int64_t height = length(2), width = length(1);
  std::vector<std::int64_t> taps;  // in the order of gathered rows
  for (const std::int64_t z : phase.taps[2])
    for (const std::int64_t r : phase.taps[0])
      for (const std::int64_t c : phase.taps[1]) taps.push_back((z * height + r) * width + c);
  w.k = std::max<std::size_t>(1, taps.size()) * in;
  w.weight.assign(w.groups * w.out * w.k, 0);
  const auto all = static_cast<std::size_t>(element_count(weight.shape(), 2, rank));
  const auto *from = weight.as<const std::int8_t>();
  for (std::size_t o = 0; o < w.groups * w.out; ++o)
    for (std::size_t t = 0; t < taps.size(); ++t)
      for (std::size_t c = 0; c < in; ++c)
        w.weight[o * w.k + t * in + c] =
            from[((o / w.out * in + c) * w.out + o % w.out) * all + static_cast<std::size_t>(taps[t])];
  finish_weights(
      w, node.inputs.size() > 2 && node.inputs[2] != graph::kNoValue ? &g.value(node.inputs[2]).constant : nullptr, x,
      *value.quantizer, y);
  return w;
}

}  // namespace qtn::runtime
