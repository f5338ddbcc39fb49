// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions: an ordinary one for each phase of their outputs, one for all phases, or a product that is added
// up.
#include <functional>

#include "runtime/layout.hpp"
#include "runtime/lower/convolution.hpp"
#include "runtime/lower/kinds.hpp"
#include "runtime/lower/overlap.hpp"
#include "runtime/lower/phases.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// Channels of a convolution to where the outputs of a phase belong.
void interleave(Lowering &l, SlotId part, std::ptrdiff_t channel, const Phase &all, SlotId y, const Phase &phase,
                const ops::Window &window) {
  View from{image_shape(l.form(y).shape, l.form(y).shape[1], phase.count), l.form(part).strides, channel};
  View to{from.shape, l.form(y).strides, 0};
  const Shape steps = image_shape(from.shape, 1, window.stride), first = image_shape(from.shape, 0, phase.at),
              skipped = image_shape(from.shape, 0, all.skipped);
  for (std::size_t axis = 2; axis < from.shape.size(); ++axis) {
    from.offset += skipped[axis] * from.strides[axis];
    to.offset += first[axis] * to.strides[axis];
    to.strides[axis] *= steps[axis];
  }
  l.add_step(make_copy(l.edge(l.add_view(part, from)), l.edge(l.add_view(y, to))));
}

/// The same of all phases at once, whose outputs are channels one after the other: along the last axis of an image they
/// lie as they belong.
void interleave_lines(Lowering &l, SlotId parts, const Phase &all, SlotId y, const ops::Window &window) {
  const Shape shape = l.form(y).shape, from = l.form(parts).strides, to = l.form(y).strides;
  const std::size_t rank = shape.size();
  const std::int64_t height = rank > 3 ? shape[rank - 2] : 1, width = shape[rank - 1], filters = shape[1];
  const std::int64_t down = window.stride[0], across = window.stride[1];
  const std::ptrdiff_t from_row = rank > 3 ? from[rank - 2] : 0, to_row = rank > 3 ? to[rank - 2] : 0;
  const auto copy = [&](std::int64_t row, std::int64_t first, std::int64_t pixels, std::int64_t phases) {
    const std::int64_t rows = (height - row + down - 1) / down;
    if (rows <= 0 || pixels <= 0 || phases <= 0) return;
    const Shape size{shape[0], rows, pixels, phases, filters};
    const View source{size,
                      {from[0], from_row, from[rank - 1], filters, 1},
                      all.skipped[0] * from_row + (all.skipped[1] + first) * from[rank - 1] + row * across * filters};
    const View target{size,
                      {to[0], down * to_row, across * to[rank - 1], to[rank - 1], to[1]},
                      row * to_row + first * across * to[rank - 1]};
    l.add_step(make_copy(l.edge(l.add_view(parts, source)), l.edge(l.add_view(y, target))));
  };
  for (std::int64_t row = 0; row < down; ++row) {
    copy(row, 0, width / across, across);
    copy(row, width / across, 1, width % across);
  }
}

ops::Window transposed_window(const Lowering &l) {
  return over_images(ops::transposed_window(l.node().attrs, l.shape_of(l.input(0)), l.shape_of(l.input(1))));
}

/// A convolution that makes a phase of the outputs, or several as channels one after the other.
struct PhaseConvolution {
  std::span<const Phase> phases;
  Phase all;
  std::size_t part;  ///< of the node's weights
  PackCache cache;
};

/// Weights of a node have parts for each phase, for all of them that begin with one, and one for a product that is added up.
std::size_t residues_of(const ops::Window &window) {
  return static_cast<std::size_t>(element_count(Shape(window.stride)));
}

/// One for each phase, or one for all. nullopt where kernels cannot do one of them.
std::optional<std::vector<PhaseConvolution>> phase_convolutions(Lowering &l, const ops::Window &window,
                                                                std::span<const Phase> phases) {
  const std::size_t residues = residues_of(window);
  std::vector<PhaseConvolution> convolutions;
  const auto plan = [&](std::span<const Phase> some, const Phase &all, std::size_t part) {
    convolutions.push_back({some, all, part, l.pack_cache(part, 2 * residues + 1)});
  };
  if (share_product(window, phases, l.node().attrs.get_int("group", 1), l.shape_of(l.output())[1]))
    plan(phases, joined(phases), residues + phases.front().residue);
  else if (phases.size() > kMostPhases)
    return std::nullopt;
  else
    for (const Phase &phase : phases) plan(std::span(&phase, 1), phase, phase.residue);
  for (const PhaseConvolution &c : convolutions)
    if (!is_ordinary(c.all.window)) return std::nullopt;
  return convolutions;
}

/// add(convolution, i, to) adds convolution i, whose results are interleaved in y.
void add_interleaved(Lowering &l, const ops::Window &window, std::span<const PhaseConvolution> convolutions, SlotId y,
                     const std::function<void(const PhaseConvolution &c, std::size_t i, SlotId to)> &add) {
  const SlotForm form = l.form(y);
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    const std::span<const Phase> phases = convolutions[i].phases;
    const Phase &all = convolutions[i].all;
    const bool whole = convolutions.size() == 1 && phases.size() == 1 && all.window.out == all.count;
    const std::int64_t channels = form.shape[1] * static_cast<std::int64_t>(phases.size());
    const Shape made = image_shape(form.shape, channels, all.window.out);
    const SlotId to = whole ? y : l.add_slot({form.dtype, made, channels_last_strides(made), form.quantizer});
    add(convolutions[i], i, to);
    if (phases.size() > 1 && window.stride[2] == 1 && is_flat(all.window))
      interleave_lines(l, to, all, y, window);
    else
      for (std::size_t p = 0; p < phases.size() && !whole; ++p)
        interleave(l, to, static_cast<std::ptrdiff_t>(p) * form.shape[1], all, y, phases[p], window);
  }
}

}  // namespace

bool lower_transposed(Lowering &l) {
  const ValueId x = l.input(0), y = l.output();
  const ops::Window window = transposed_window(l);
  const auto phases = phases_of(window);
  if (!phases) return false;
  const QuantizerPtr qx = canonical(l.g.value(x).quantizer);
  const QuantizerPtr qy = l.is_8bit(y) ? canonical(l.g.value(y).quantizer) : nullptr;
  const auto convolutions = phase_convolutions(l, window, *phases);
  if (!convolutions) return false;
  std::vector<LinearWeights> weights;
  const auto channels = static_cast<std::size_t>(l.shape_of(y)[1]);
  for (const PhaseConvolution &c : *convolutions) {
    weights.push_back(l.finished(phase_weights(l.g, l.node(), c.phases, c.all), channels, *qx, qy.get(), c.part));
    if (!weights.back().sums_fit) return false;
  }
  const Shape &shape = l.shape_of(y), strides = channels_last_strides(shape);
  const SlotId xs = l.image(l.integer(x));
  const SlotId ys = qy ? l.integer_output(y, shape, strides) : l.real_slot(shape, strides);
  const QuantizedRange out = qy ? l.range(qy) : QuantizedRange{};
  add_interleaved(l, window, *convolutions, ys, [&](const PhaseConvolution &c, std::size_t i, SlotId to) {
    add_convolution(l, xs, to, c.all.window, weights[i], out, c.cache);
  });
  if (!qy) l.set_real(y, ys);
  return true;
}

namespace {

/// How many outputs of a channel of a volume the operator makes faster than tiles do.
constexpr std::int64_t kFewOfVolume = 1;

/// Whether a product that is added up is the better way, or the only one.
bool is_overlapped(const Overlap &overlap, const std::optional<std::vector<PhaseConvolution>> &convolutions,
                   std::int64_t groups) {
  if (groups != 1 || !is_ordinary(overlap.window)) return false;
  double vectors = convolutions ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; convolutions && i < convolutions->size(); ++i) {
    const PhaseConvolution &c = (*convolutions)[i];
    vectors += vectors_of_convolution(c.all.window, static_cast<std::size_t>(overlap.filters()) * c.phases.size());
  }
  return overlap.is_faster_than(vectors);
}

}  // namespace

bool lower_real_transposed(Lowering &l) {
  if (l.node().op != &ops::kConvTranspose) return false;
  const Shape &x = l.shape_of(l.input(0)), &shape = l.shape_of(l.output());
  const bool biased = l.input(2) != kNoValue;
  const Tensor weight = l.real_constant(l.input(1)), bias = l.real_constant(l.input(2));
  if (x.size() < 3 || x.size() > 5 || !weight.has_data() || (biased && !bias.has_data())) return false;
  if (element_count(x) == 0 || weight.count() == 0) return false;
  const ops::Window window = transposed_window(l);
  const std::int64_t groups = l.node().attrs.get_int("group", 1);
  if (is_for_channels_of_volumes(window, x[1], groups, weight.dim(1), kFewOfVolume)) return false;
  const auto phases = phases_of(window);
  const auto convolutions = phases ? phase_convolutions(l, window, *phases) : std::nullopt;
  const Overlap overlap = Overlap::of_transposed(window, weight);
  const bool overlapped = is_overlapped(overlap, convolutions, groups);
  if (!overlapped && !convolutions) return false;
  const SlotId from = l.real_image(l.input(0)), y = l.real_slot(shape, channels_last_strides(shape));
  if (overlapped) {
    const std::size_t part = 2 * residues_of(window);
    overlap.add(l, from, y, bias, l.pack_cache(part, part + 1));
  } else {
    add_interleaved(l, window, *convolutions, y, [&](const PhaseConvolution &c, std::size_t, SlotId to) {
      add_real_convolution(l, from, to, c.all.window, real_phase_weights(weight, bias, groups, c.phases, c.all),
                           c.cache);
    });
  }
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
