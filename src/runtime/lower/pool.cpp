// SPDX-License-Identifier: Apache-2.0
// Windows of images, and whole images, that become one number for each channel.
#include <algorithm>
#include <limits>

#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// ReduceMean over all spatial axes of an image and no other.
bool reduces_images(Lowering &l) {
  const Shape &x = l.shape_of(l.input(0));
  if (l.input(1) == kNoValue || !l.constant_of(l.input(1)).has_data()) return false;
  std::vector<bool> reduced(x.size(), false);
  for (const std::int64_t a : int_values(l.constant_of(l.input(1)), "ReduceMean: axes"))
    reduced[normalize_axis(a, x.size(), "ReduceMean")] = true;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (reduced[i] != (i >= 2)) return false;
  return true;
}

/// Whether int32 holds the sum of a window; of so many taps pointers alone would fill the cache.
bool pools_in_int32(const ops::Window &window) {
  std::int64_t left = std::numeric_limits<std::int32_t>::max() / 255;
  for (std::size_t axis = 0; axis < 3; ++axis)
    left /= std::max<std::int64_t>(1, std::min(window.kernel[axis], window.in[axis]));
  return left > 0;
}

bool add_pool(Lowering &l, ops::Window window, Pooling pooling) {
  const ValueId v = l.output();
  if (!is_ordinary(window) || !pools_in_int32(window)) return false;
  const SlotId x = l.image(l.integer(l.input(0)));
  // ReduceMean may drop the axes that its pooled image keeps with length 1.
  const Shape shape = image_shape(l.shape_of(l.input(0)), l.shape_of(l.input(0))[1], window.out);
  const SlotId y = l.integer_output(v, shape, channels_last_strides(shape));
  Edge from = l.edge(x), to = l.edge(y);
  lay_down(window, from, to);
  l.add_step(make_pool(from, to, window, pooling, l.node().attrs.get_int("count_include_pad", 0) != 0,
                       l.range(l.form(y).quantizer), l.isa));
  if (shape != l.shape_of(v)) l.set_integer(v, l.add_view(y, {l.shape_of(v), contiguous_strides(l.shape_of(v)), 0}));
  return true;
}

}  // namespace

bool lower_pool(Lowering &l) {
  const std::string_view op = l.node().op->name;
  const Shape &x = l.shape_of(l.input(0));
  if (x.size() < 3 || x.size() > 5) return false;
  if (op == "MaxPool") return add_pool(l, over_images(ops::pool_window("MaxPool", l.node().attrs, x)), Pooling::max);
  if (op == "AveragePool")
    return add_pool(l, over_images(ops::pool_window("AveragePool", l.node().attrs, x)), Pooling::average);
  if (op == "GlobalMaxPool") return add_pool(l, whole_image(x), Pooling::max);
  if (op == "GlobalAveragePool" || (op == "ReduceMean" && reduces_images(l)))
    return add_pool(l, whole_image(x), Pooling::average);
  return false;
}

bool lower_real_pool(Lowering &l) {
  const std::string_view op = l.node().op->name;
  const Shape &x = l.shape_of(l.input(0));
  const bool max = op == "MaxPool" && l.node().outputs.size() == 1;
  const bool global = op == "GlobalAveragePool" || (op == "ReduceMean" && x.size() >= 3 && reduces_images(l));
  if (!max && !global && op != "AveragePool") return false;
  if (x.size() < 3 || x.size() > 5) return false;
  // Planes as wholes, and few of them, are as good where they lie; a single one has its channels last and first.
  constexpr std::int64_t kFewChannels = 4;
  if (x[1] == 1 && op != "AveragePool") return false;
  if ((global || x[1] < kFewChannels) && !l.is_dense_image(l.any_real(l.input(0)))) return false;
  ops::Window window = global ? whole_image(x) : over_images(ops::pool_window(op.data(), l.node().attrs, x));
  if (!is_ordinary(window)) return false;
  // ReduceMean may drop the axes that its pooled image keeps with length 1.
  const Shape shape = image_shape(x, x[1], window.out);
  SlotId y = l.real_slot(shape, channels_last_strides(shape));
  Edge from = l.edge(l.real_image(l.input(0))), to = l.edge(y);
  lay_down(window, from, to);
  l.add_step(make_real_pool(from, to, window, max ? Pooling::max : Pooling::average,
                            l.node().attrs.get_int("count_include_pad", 0) != 0, l.clamp(), l.isa));
  if (shape != l.shape_of(l.output()))
    y = l.add_view(y, {l.shape_of(l.output()), contiguous_strides(l.shape_of(l.output())), 0});
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
