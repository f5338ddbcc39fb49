// SPDX-License-Identifier: Apache-2.0
// Convolutions of images, and transposed ones, which are a convolution for each phase of their outputs.
#include <functional>

#include "ops/common/im2col.hpp"
#include "runtime/lower/borders.hpp"
#include "runtime/lower/inside_taps.hpp"
#include "runtime/lower/kinds.hpp"
#include "runtime/lower/neighbours.hpp"
#include "runtime/lower/phases.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// Each channel of an image so many times, one after the other.
SlotId repeated_channels(Lowering &l, SlotId x, std::int64_t times) {
  const SlotForm form = l.form(x);
  Shape shape = form.shape;
  shape[1] *= times;
  const SlotId y = l.add_slot({form.dtype, shape, channels_last_strides(shape), form.quantizer});
  View from{{}, {}, 0}, to{{}, {}, 0};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const bool channels = axis == 1;
    from.shape.push_back(form.shape[axis]);
    from.strides.push_back(form.strides[axis]);
    to.strides.push_back(channels ? times : l.form(y).strides[axis]);
    if (!channels) continue;
    from.shape.push_back(times);
    from.strides.push_back(0);
    to.strides.push_back(1);
  }
  to.shape = from.shape;
  l.add_step(make_copy(l.edge(l.add_view(x, from)), l.edge(l.add_view(y, to))));
  return y;
}

/// How many outputs of a channel gain by that: convolutions of integers have a kernel for groups.
constexpr std::size_t kFew = 3, kFewReals = 8;

/// How many outputs of a channel of a volume the operator makes faster than tiles do, and how many if it is transposed.
constexpr std::int64_t kFewOfVolume = 4, kFewTransposed = 1;

/// A convolution of each channel for itself with a few outputs each is one of the repeated channels, which have one.
template <class Weights>
SlotId as_depthwise(Lowering &l, SlotId x, Weights &w, std::size_t few) {
  const auto channels = static_cast<std::size_t>(l.form(x).shape[1]);
  if (w.groups == 1 || w.groups != channels || w.out == 1 || w.out > few) return x;
  const SlotId repeated = repeated_channels(l, x, static_cast<std::int64_t>(w.out));
  w.groups *= w.out;
  w.out = 1;
  return repeated;
}

/// make(to, window, weights, cache) is a convolution that makes each output of y alone, or neighbours together.
template <class Weights>
void add_alone_or_joined(
    Lowering &l, const Edge &y, const ops::Window &window, const Weights &w, const PackCache &cache,
    const std::function<StepPtr(const Edge &to, const ops::Window &, const Weights &, const PackCache &)> &make) {
  const Neighbours neighbours(window, w.groups, w.out);
  const PackCache own = neighbours.cache(cache);
  if (neighbours.count() == 1) return l.add_step(make(y, window, w, own));
  add_neighbours(l, l.seen(y), neighbours.count(), [&](SlotId to) {
    StepPtr step = make(l.edge(to), neighbours.window(), neighbours.weights(w), own);
    step->macs = element_count(y.form.shape) * static_cast<std::int64_t>(w.k);
    return step;
  });
}

/// Each channel for itself. A single one is an ordinary convolution, which makes several of its pixels together.
template <class Weights>
bool is_depthwise(const Weights &w, const Shape &x) {
  return w.out == 1 && w.groups > 1 && static_cast<std::int64_t>(w.groups) == x[1];
}

void add_convolution(Lowering &l, SlotId from, SlotId to, const ops::Window &whole, const LinearWeights &of_whole,
                     const QuantizedRange &out, const PackCache &of_node) {
  Edge x = l.edge(from), y = l.edge(to);
  const InsideTaps inside(whole);
  ops::Window window = inside.window();
  const LinearWeights w = inside.weights(of_whole, static_cast<std::int32_t>(x.form.quantizer->zero_point()));
  const PackCache cache = inside.cache(of_node);
  lay_down(window, x, y);
  if (is_depthwise(w, x.form.shape)) return l.add_step(make_depthwise(x, y, window, w, out, l.clamp(), l.isa, cache));
  x = with_borders(l, x, w.groups, window);
  add_alone_or_joined<LinearWeights>(l, y, window, w, cache,
                                     [&](const Edge &made, const auto &over, const auto &weights, const auto &packs) {
                                       return make_conv(x, made, over, weights, out, l.clamp(), l.isa, packs);
                                     });
}

void add_real_convolution(Lowering &l, SlotId from, SlotId to, const ops::Window &whole, const RealWeights &of_whole,
                          const PackCache &of_node) {
  Edge x = l.edge(from), y = l.edge(to);
  const InsideTaps inside(whole);
  ops::Window window = inside.window();
  const RealWeights w = inside.weights(of_whole);
  lay_down(window, x, y);
  // Images of one plane may be depthwise where volumes that the same node meets are not.
  const bool depthwise = is_depthwise(w, x.form.shape) && is_flat(window);
  const PackCache cache = part_of(inside.cache(of_node), depthwise, 2);
  if (depthwise) return l.add_step(make_real_depthwise(x, y, window, w, l.clamp(), l.isa, cache));
  add_alone_or_joined<RealWeights>(l, y, window, w, cache,
                                   [&](const Edge &made, const auto &over, const auto &weights, const auto &packs) {
                                     return make_real_conv(x, made, over, weights, l.clamp(), l.isa, packs);
                                   });
}

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

/// One for each phase, or one for all. nullopt where kernels cannot do one of them.
std::optional<std::vector<PhaseConvolution>> phase_convolutions(Lowering &l, const ops::Window &window,
                                                                std::span<const Phase> phases) {
  const auto residues = static_cast<std::size_t>(element_count(Shape(window.stride)));
  std::vector<PhaseConvolution> convolutions;
  const auto plan = [&](std::span<const Phase> some, const Phase &all, std::size_t part) {
    convolutions.push_back({some, all, part, l.pack_cache(part, 2 * residues)});
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

}  // namespace

bool lower_convolution(Lowering &l) {
  if (l.node().op == &ops::kConvTranspose) return lower_transposed(l);
  const ValueId x = l.input(0), y = l.output();
  const QuantizerPtr qx = canonical(l.g.value(x).quantizer);
  const QuantizerPtr qy = l.is_8bit(y) ? canonical(l.g.value(y).quantizer) : nullptr;
  LinearWeights w = linear_weights(l.g, l.node());
  w = l.finished(w, w.groups * w.out, *qx, qy.get());
  const ops::Window window = over_images(ops::conv_window(l.node().attrs, l.shape_of(x), l.shape_of(l.input(1))));
  if (!w.sums_fit || !is_ordinary(window)) return false;
  const SlotId xs = as_depthwise(l, l.image(l.integer(x)), w, kFew);
  const Shape strides = channels_last_strides(l.shape_of(y));
  const SlotId ys = qy ? l.integer_output(y, l.shape_of(y), strides) : l.real_slot(l.shape_of(y), strides);
  add_convolution(l, xs, ys, window, w, qy ? l.range(qy) : QuantizedRange{}, l.pack_cache());
  if (!qy) l.set_real(y, ys);
  return true;
}

namespace {

/// Each channel of a volume for itself, with so few outputs: by the operator, since most of a tile would be empty.
bool is_for_channels_of_volumes(const ops::Window &window, std::int64_t channels, std::int64_t groups, std::int64_t out,
                                std::int64_t few) {
  return groups > 1 && groups == channels && out <= few && !is_flat(window);
}

}  // namespace

bool lower_real_convolution(Lowering &l) {
  if (l.node().op != &ops::kConv) return false;
  const Shape &x = l.shape_of(l.input(0)), &shape = l.shape_of(l.output());
  const bool biased = l.input(2) != kNoValue;
  const Tensor weight = l.real_constant(l.input(1)), bias = l.real_constant(l.input(2));
  if (x.size() < 3 || x.size() > 5 || !weight.has_data() || (biased && !bias.has_data())) return false;
  const ops::Window window = over_images(ops::conv_window(l.node().attrs, x, weight.shape()));
  if (!is_ordinary(window) || element_count(x) == 0 || weight.count() == 0) return false;
  const std::int64_t groups = l.node().attrs.get_int("group", 1);
  RealWeights w;
  w.groups = static_cast<std::size_t>(groups);
  w.out = static_cast<std::size_t>(weight.dim(0)) / w.groups;
  w.taps = element_count(weight.shape(), 2, weight.rank());
  w.k = static_cast<std::size_t>(weight.dim(1) * w.taps);
  if (is_for_channels_of_volumes(window, x[1], groups, weight.dim(0) / groups, kFewOfVolume)) return false;
  w.weight = weight;
  w.bias = bias;
  SlotId from = as_image(x, l.form(l.any_real(l.input(0))).strides) ? l.any_real(l.input(0)) : l.real_image(l.input(0));
  if (is_flat(window)) from = as_depthwise(l, from, w, kFewReals);
  const SlotId y = l.real_slot(shape, channels_last_strides(shape));
  add_real_convolution(l, from, y, window, w, l.pack_cache());
  l.set_real(l.output(), y);
  return true;
}

/// Filters of single places that are computed: at all places of an image, a product of two matrices.
bool lower_computed_product(Lowering &l) {
  if (l.node().op != &ops::kConv || !l.is_real(l.input(1)) || l.input(2) != kNoValue) return false;
  const Shape &x = l.shape_of(l.input(0)), &weight = l.shape_of(l.input(1)), &y = l.shape_of(l.output());
  const std::int64_t groups = l.node().attrs.get_int("group", 1), channels = weight[1], filters = weight[0] / groups;
  const ops::Convolution conv{x[0], x[1], weight[0], groups, ops::conv_window(l.node().attrs, x, weight).lifted()};
  if (!conv.pointwise() || channels == 1 || element_count(x) == 0 || element_count(weight) == 0) return false;
  const auto matrices = [&](SlotId s, const Shape &shape, std::int64_t step) {
    Shape strides = contiguous_strides(shape);
    strides[0] = step;
    return l.edge(l.add_view(s, {shape, strides, 0}));
  };
  const std::int64_t size = conv.in_size();
  const SlotId by = l.real(l.input(1)), from = l.real(l.input(0)), to = l.plain_slot(QTN_FLOAT32, y);
  l.add_step(make_real_matmul(matrices(by, {x[0], groups, filters, channels}, 0),
                              matrices(from, {x[0], groups, channels, size}, x[1] * size),
                              matrices(to, {x[0], groups, filters, size}, y[1] * size), l.clamp(), l.isa));
  l.set_real(l.output(), to);
  return true;
}

bool lower_real_transposed(Lowering &l) {
  if (l.node().op != &ops::kConvTranspose) return false;
  const Shape &x = l.shape_of(l.input(0)), &shape = l.shape_of(l.output());
  const bool biased = l.input(2) != kNoValue;
  const Tensor weight = l.real_constant(l.input(1)), bias = l.real_constant(l.input(2));
  if (x.size() < 3 || x.size() > 5 || !weight.has_data() || (biased && !bias.has_data())) return false;
  if (element_count(x) == 0 || weight.count() == 0) return false;
  const ops::Window window = transposed_window(l);
  const std::int64_t groups = l.node().attrs.get_int("group", 1);
  if (is_for_channels_of_volumes(window, x[1], groups, weight.dim(1), kFewTransposed)) return false;
  const auto phases = phases_of(window);
  if (!phases) return false;
  const auto convolutions = phase_convolutions(l, window, *phases);
  if (!convolutions) return false;
  const SlotId from = l.real_image(l.input(0)), y = l.real_slot(shape, channels_last_strides(shape));
  add_interleaved(l, window, *convolutions, y, [&](const PhaseConvolution &c, std::size_t, SlotId to) {
    add_real_convolution(l, from, to, c.all.window, real_phase_weights(weight, bias, groups, c.phases, c.all), c.cache);
  });
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
