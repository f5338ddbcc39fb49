// SPDX-License-Identifier: Apache-2.0
// Convolutions of images.
#include "runtime/lower/convolution.hpp"

#include <functional>

#include "ops/common/im2col.hpp"
#include "runtime/lower/borders.hpp"
#include "runtime/lower/inside_taps.hpp"
#include "runtime/lower/kinds.hpp"
#include "runtime/lower/neighbours.hpp"
#include "runtime/lower/overlap.hpp"

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

/// How many outputs of a channel of a volume the operator makes faster than tiles do.
constexpr std::int64_t kFewOfVolume = 4;

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

}  // namespace

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

double vectors_of_convolution(const ops::Window &window, std::size_t filters) {
  return Neighbours(laid_down(InsideTaps(window).window()), 1, filters).vectors();
}

bool is_for_channels_of_volumes(const ops::Window &window, std::int64_t channels, std::int64_t groups, std::int64_t out,
                                std::int64_t few) {
  return groups > 1 && groups == channels && out <= few && !is_flat(window);
}

namespace {

/// Whether filters are so few that a product which is added up is faster than neighbours together.
bool is_overlapped(const Overlap &overlap, const ops::Window &window, const RealWeights &w) {
  if (w.groups != 1 || window.stride != ops::Window::Dims{1, 1, 1}) return false;
  const double pixels = static_cast<double>(element_count(Shape(window.in))),
               outputs = static_cast<double>(window.outputs_count());
  return overlap.is_faster_than(vectors_of_convolution(window, w.out) * outputs / pixels);
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
  if (const Overlap overlap = Overlap::of_ordinary(window, weight); is_overlapped(overlap, window, w)) {
    const SlotId from = l.real_image(l.input(0)), y = l.real_slot(shape, channels_last_strides(shape));
    overlap.add(l, from, y, bias, part_of(l.pack_cache(), 1, 2));
    l.set_real(l.output(), y);
    return true;
  }
  w.weight = weight;
  w.bias = bias;
  SlotId from = as_image(x, l.form(l.any_real(l.input(0))).strides) ? l.any_real(l.input(0)) : l.real_image(l.input(0));
  if (is_flat(window)) from = as_depthwise(l, from, w, kFewReals);
  const SlotId y = l.real_slot(shape, channels_last_strides(shape));
  add_real_convolution(l, from, y, window, w, part_of(l.pack_cache(), 0, 2));
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

}  // namespace qtn::runtime
