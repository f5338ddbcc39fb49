// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/borders.hpp"

namespace qtn::runtime {
namespace {

/// That of the integers in such a slot.
Tensor zero_point_of(const SlotForm &form) {
  const Tensor zero(form.dtype, Shape{1}, form.quantizer);
  *zero.as<std::uint8_t>() = static_cast<std::uint8_t>(form.quantizer->zero_point());
  return zero;
}

}  // namespace

Edge with_borders(Lowering &l, const Edge &x, std::size_t groups, ops::Window &window) {
  const SlotForm &form = x.form;
  const std::int64_t channels = form.shape[1], width = window.in[1];
  const std::int64_t last_tap = (window.out[1] - 1) * window.stride[1] + (window.kernel[1] - 1) * window.dilation[1];
  // Windows of transposed convolutions may begin within the volume.
  const std::int64_t left = std::max<std::int64_t>(0, window.pad_begin[1]);
  const std::int64_t right = std::max<std::int64_t>(0, last_tap + 1 - window.pad_begin[1] - width);
  if (is_flat(window) || channels / static_cast<std::int64_t>(groups) % 4 == 0 || left + right == 0) return x;
  const std::size_t last = form.shape.size() - 1;
  Shape wide = form.shape;
  wide[last] = left + width + right;
  const Shape strides = channels_last_strides(wide);
  const SlotId y = l.add_slot({form.dtype, wide, strides, form.quantizer});
  const SlotId zero = l.add_constant(zero_point_of(form));
  const auto columns = [&](std::int64_t first, std::int64_t count) {
    View view{wide, strides, first * channels};
    view.shape[last] = count;
    return view;
  };
  const auto fill = [&](std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    const View to = columns(first, count);
    View from{to.shape, to.strides, 0};
    for (std::int64_t &stride : from.strides) stride = 0;
    l.add_step(make_copy(l.edge(l.add_view(zero, from)), l.edge(l.add_view(y, to))));
  };
  fill(0, left);
  fill(left + width, right);
  l.add_step(make_copy(l.edge(l.seen(x)), l.edge(l.add_view(y, columns(left, width)))));
  window.in[1] = wide[last];
  window.pad_begin[1] -= left;
  window.pad_end[1] = 0;
  return l.edge(y);
}

}  // namespace qtn::runtime
