// SPDX-License-Identifier: Apache-2.0
#include "runtime/layout.hpp"

#include <algorithm>

#include "base/stable_order.hpp"

namespace qtn::runtime {

std::optional<Image> as_image(const Shape &shape, const Shape &strides) {
  if (shape.size() < 3 || shape.size() > 5) return std::nullopt;
  const std::size_t last = shape.size() - 1;
  Image p{shape[0], shape[1], element_count(shape, 2, last), shape[last], shape[1]};
  bool fits = shape[1] <= 1 || strides[1] == 1, known = false;
  std::int64_t pixels = 1;  // of the axes further inside
  const auto take = [&](std::size_t axis) {
    // The step of an axis of length 1 does not matter, so the first other one tells how far apart pixels are.
    if (shape[axis] > 1) {
      if (!known) p.pixel = strides[axis] / pixels;
      known = true;
      fits = fits && strides[axis] == pixels * p.pixel;
    }
    pixels *= std::max<std::int64_t>(1, shape[axis]);
  };
  for (std::size_t axis = last; axis >= 2; --axis) take(axis);
  take(0);
  return fits && p.pixel >= p.c ? std::optional(p) : std::nullopt;
}

bool is_contiguous(const SlotForm &f) { return same_layout(f.shape, f.strides, contiguous_strides(f.shape)); }

bool lies_as_image(const SlotForm &f) { return !is_contiguous(f) && as_image(f.shape, f.strides); }

std::optional<std::ptrdiff_t> TailedStep::row_of(const Shape &shape, const Shape &strides) const {
  if (makes_matrices())
    return same_layout(shape, strides, contiguous_strides(shape)) ? std::optional<std::ptrdiff_t>(shape.back())
                                                                  : std::nullopt;
  const auto image = as_image(shape, strides);
  return image ? std::optional(image->pixel) : std::nullopt;
}

Shape integer_strides(const Shape &shape) {
  return shape.size() == 4 || shape.size() == 5 ? channels_last_strides(shape) : contiguous_strides(shape);
}

Shape strides_as(const SlotForm &x, const Shape &shape) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (x.shape[i] > 1 && x.strides[i] == 0) return integer_strides(shape);
  return dense_strides(shape, x.strides);
}

bool is_dense(const SlotForm &f) {
  if (is_contiguous(f)) return true;
  const auto image = as_image(f.shape, f.strides);
  return image && image->pixel == image->c;
}

bool is_gapless(const SlotForm &f) {
  if (element_count(f.shape) == 0) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, length
  for (std::size_t i = 0; i < f.shape.size(); ++i)
    if (f.shape[i] != 1) axes.emplace_back(f.strides[i], f.shape[i]);
  std::sort(axes.begin(), axes.end());
  std::int64_t next = 1;
  for (const auto &[stride, length] : axes) {
    if (stride != next) return false;
    next *= length;
  }
  return true;
}

Shape dense_strides(const Shape &shape, const Shape &order) {
  const std::vector<std::size_t> axes =
      stable_order(shape.size(), [&](std::size_t a, std::size_t b) { return order[a] > order[b]; });
  Shape strides = shape;
  std::int64_t step = 1;
  for (std::size_t i = axes.size(); i-- > 0; step *= std::max<std::int64_t>(1, shape[axes[i]])) strides[axes[i]] = step;
  return strides;
}

ops::Window over_images(const ops::Window &window) {
  const ops::Window lifted = window.lifted();
  ops::Window w;
  w.rank = 3;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t from = (i + 1) % 3;
    w.in[i] = lifted.in[from];
    w.kernel[i] = lifted.kernel[from];
    w.stride[i] = lifted.stride[from];
    w.dilation[i] = lifted.dilation[from];
    w.pad_begin[i] = lifted.pad_begin[from];
    w.pad_end[i] = lifted.pad_end[from];
    w.out[i] = lifted.out[from];
  }
  return w;
}

namespace {

/// Whether there is one place along an axis, and windows of one.
bool is_still(const ops::Window &w, std::size_t axis) {
  return w.in[axis] == 1 && w.kernel[axis] == 1 && w.out[axis] == 1 && w.pad_begin[axis] == 0;
}

/// Whether it goes along other axes than the last one alone.
bool stands(const ops::Window &w) { return is_still(w, 1) && !(is_still(w, 0) && is_still(w, 2)); }

void turn(ops::Window &w) {
  for (ops::Window::Dims *lengths : {&w.in, &w.kernel, &w.stride, &w.dilation, &w.pad_begin, &w.pad_end, &w.out})
    *lengths = {(*lengths)[2], (*lengths)[0], (*lengths)[1]};
}

void last_first(SlotForm &form) {
  for (Shape *axes : {&form.shape, &form.strides}) std::rotate(axes->begin() + 2, axes->end() - 1, axes->end());
}

}  // namespace

bool is_flat(const ops::Window &window) { return is_still(window, 2); }

ops::Window laid_down(ops::Window window) {
  while (stands(window)) turn(window);
  return window;
}

void lay_down(ops::Window &window, Edge &x, Edge &y) {
  for (; stands(window); turn(window)) {
    last_first(x.form);
    last_first(y.form);
  }
}

Shape image_shape(const Shape &x, std::int64_t channels, const ops::Window::Dims &spatial) {
  Shape shape = x;
  shape[1] = channels;
  for (std::size_t axis = 2; axis < x.size(); ++axis) shape[axis] = spatial[(axis + 5 - x.size()) % 3];
  return shape;
}

ops::Window whole_image(const Shape &x) {
  ops::Window w;
  w.rank = 3;
  w.in = w.kernel = {element_count(x, 2, x.size() - 1), x.back(), 1};
  w.stride = w.dilation = w.out = {1, 1, 1};
  return w;
}

std::int64_t read_padding(const ops::Window &w, std::size_t axis) {
  const std::int64_t last = (w.out[axis] - 1) * w.stride[axis] + (w.kernel[axis] - 1) * w.dilation[axis];
  return std::max<std::int64_t>(0, last + 1 - w.in[axis] - w.pad_begin[axis]);
}

bool is_ordinary(const ops::Window &w) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 28, kLargest = std::int64_t{1} << 40;
  std::int64_t area = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t last = std::max<std::int64_t>(0, w.out[axis] - 1) * w.stride[axis];
    const std::int64_t reach = last + (w.kernel[axis] - 1) * w.dilation[axis] + 1;
    if (reach < 1) return false;  // windows over an image of nothing
    if (std::max(reach, w.stride[axis]) > std::min(kLongest, 4 * w.in[axis] + 1024)) return false;
    if (reach > kLargest / area) return false;
    area *= reach;
  }
  return true;
}

}  // namespace qtn::runtime
