// SPDX-License-Identifier: Apache-2.0
// Output rows of pools, cut into runs of pixels whose windows lie alike.
#pragma once

#include "base/size.hpp"
#include "ops/common/window.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// Calls body(ox, count, taps) from left to right: pixels at the borders one by one, those between whose windows lie
/// inside the row as one run.
template <class Body>
void for_runs(const ops::Window &w, Body &&body) {
  const std::int64_t out = w.out[1];
  for (std::int64_t ox = 0; ox < out;) {
    const ops::Span taps = w.taps(1, ox);
    std::int64_t end = ox + 1;
    if (taps.begin == 0 && taps.end == w.kernel[1])
      while (end < out && w.taps(1, end).begin == 0 && w.taps(1, end).end == w.kernel[1]) ++end;
    body(ox, end - ox, taps);
    ox = end;
  }
}

/// The first element of the pixel that a tap of an output reads, both in the order of a window over images.
template <class T>
const T *tap_pixel(const T *image, const Image &x, const ops::Window &w, const ops::Window::Dims &o,
                   const ops::Window::Dims &k) {
  const auto at = [&](std::size_t axis) {
    return o[axis] * w.stride[axis] - w.pad_begin[axis] + k[axis] * w.dilation[axis];
  };
  return image + ((at(2) * w.in[0] + at(0)) * x.w + at(1)) * x.pixel;
}

/// Pools of elements of type T: one task for each output row, with scratch for the pointers of one window.
template <class T>
class WindowedStep : public Step {
 public:
  WindowedStep(const Edge &x, const Edge &y, const ops::Window &window)
      : x_(x.slot),
        y_(y.slot),
        image_(*as_image(x.form.shape, x.form.strides)),
        y_image_(*as_image(y.form.shape, y.form.strides)),
        window_(window) {
    integer = sizeof(T) == 1;
    reads = {x.slot};
    writes = {y.slot};
  }

  bool spread_output(std::ptrdiff_t pixel) final {
    y_image_.pixel = pixel;
    return true;
  }

  std::size_t lane_bytes() const override {
    return round_up((Size(most_taps(0)) * most_taps(1) * most_taps(2) * sizeof(void *)).value(), kAlignment);
  }

  void run(const Context &c) const final {
    const auto *x = c.tensor(x_).template as<const T>();
    auto *y = c.tensor(y_).template as<T>();
    const auto rows = static_cast<std::size_t>(window_.out[2] * window_.out[0]);
    const std::size_t tap_bytes =
        (Size(image_.n) * image_.c * window_.outputs_count() * most_taps(0) * most_taps(1) * most_taps(2)).value();
    for_chunks(c, static_cast<std::size_t>(image_.n) * rows, tap_bytes * sizeof(T) / 64,
               [&](std::size_t lane, std::size_t chunk) {
                 const auto image = static_cast<std::int64_t>(chunk / rows),
                            line = static_cast<std::int64_t>(chunk % rows);
                 row(x + image * image_.pixels() * image_.pixel, line / window_.out[0], line % window_.out[0],
                     y + (image * y_image_.h + line) * y_image_.w * y_image_.pixel,
                     reinterpret_cast<const T **>(c.lane_scratch(lane)));
               });
  }

 protected:
  /// Computes output row `oy` of plane `oz` of one image; `taps` has room for one pointer for each tap.
  virtual void row(const T *image, std::int64_t oz, std::int64_t oy, T *y, const T **taps) const = 0;

  /// Calls body(ox, count, taps) for pixels of an output row whose windows lie alike, the pointers of the first in
  /// `taps`.
  template <class Body>
  void for_windows(const T *image, std::int64_t oz, std::int64_t oy, const T **taps, Body &&body) const {
    const ops::Span zs = window_.taps(2, oz), ys = window_.taps(0, oy);
    for_runs(window_, [&](std::int64_t ox, std::int64_t count, ops::Span xs) {
      std::size_t used = 0;
      for (std::int64_t kz = zs.begin; kz < zs.end; ++kz)
        for (std::int64_t ky = ys.begin; ky < ys.end; ++ky)
          for (std::int64_t kx = xs.begin; kx < xs.end; ++kx)
            taps[used++] = tap_pixel(image, image_, window_, {oy, ox, oz}, {ky, kx, kz});
      body(ox, count, used);
    });
  }

  /// Taps of a window on the image or its declared padding.
  std::int64_t padded_taps(std::int64_t oz, std::int64_t oy, std::int64_t ox) const {
    const auto length = [&](std::size_t axis, std::int64_t o) {
      const ops::Span taps = window_.padded_taps(axis, o);
      return std::max<std::int64_t>(0, taps.end - taps.begin);
    };
    return length(2, oz) * length(0, oy) * length(1, ox);
  }

  /// Taps of a window that can lie on the image at once, along an axis.
  std::int64_t most_taps(std::size_t axis) const {
    return std::min(window_.kernel[axis], (window_.in[axis] - 1) / window_.dilation[axis] + 1);
  }

  SlotId x_, y_;
  Image image_, y_image_;
  ops::Window window_;
};

}  // namespace qtn::runtime
