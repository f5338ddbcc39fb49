// SPDX-License-Identifier: Apache-2.0
#include "runtime/layout.hpp"

#include <algorithm>

namespace qtn::runtime {

std::optional<Picture> as_picture(const Shape &shape, const Shape &strides) {
  if (shape.size() < 3 || shape.size() > 4) return std::nullopt;
  const bool flat = shape.size() == 3;
  const std::size_t w = shape.size() - 1;
  const Picture p{shape[0], shape[1], flat ? 1 : shape[2], shape[w], shape[w] > 1 ? strides[w] : shape[1]};
  // The step of an axis of length 1 does not matter.
  const auto steps = [&](std::size_t axis, std::int64_t step) { return shape[axis] <= 1 || strides[axis] == step; };
  std::ptrdiff_t pixel = p.pixel;
  if (shape[w] <= 1 && !flat && shape[2] > 1) pixel = strides[2] / std::max<std::int64_t>(1, p.w);
  if (shape[w] <= 1 && (flat || shape[2] <= 1) && shape[0] > 1)
    pixel = strides[0] / std::max<std::int64_t>(1, p.pixels());
  Picture fitted = p;
  fitted.pixel = pixel;
  const bool fits =
      steps(1, 1) && pixel >= p.c && steps(w, pixel) && (flat || steps(2, p.w * pixel)) && steps(0, p.pixels() * pixel);
  return fits ? std::optional(fitted) : std::nullopt;
}

bool is_contiguous(const SlotForm &f) { return same_layout(f.shape, f.strides, contiguous_strides(f.shape)); }

Shape integer_strides(const Shape &shape) {
  return shape.size() == 4 ? channels_last_strides(shape) : contiguous_strides(shape);
}

bool is_dense(const SlotForm &f) {
  if (is_contiguous(f)) return true;
  const auto picture = as_picture(f.shape, f.strides);
  return picture && picture->pixel == picture->c;
}

ops::Window over_pictures(const ops::Window &window) {
  const ops::Window lifted = window.lifted();
  ops::Window w;
  w.rank = 2;
  for (std::size_t i = 0; i < 2; ++i) {
    w.in[i] = lifted.in[i + 1];
    w.kernel[i] = lifted.kernel[i + 1];
    w.stride[i] = lifted.stride[i + 1];
    w.dilation[i] = lifted.dilation[i + 1];
    w.pad_begin[i] = lifted.pad_begin[i + 1];
    w.pad_end[i] = lifted.pad_end[i + 1];
    w.out[i] = lifted.out[i + 1];
  }
  return w;
}

ops::Window whole_picture(const Shape &x) {
  ops::Window w;
  w.rank = 2;
  w.in = w.kernel = {x.size() == 3 ? 1 : x[2], x.back(), 1};
  w.stride = w.dilation = w.out = {1, 1, 1};
  return w;
}

}  // namespace qtn::runtime
