// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/overlap.hpp"

#include "runtime/layout.hpp"
#include "runtime/lower/vectors.hpp"

namespace qtn::runtime {
namespace {

/// What adding up an element of a product takes, in vectors of filters by one channel.
constexpr double kAdding = 2;

constexpr double kGain = 0.75;

/// How many times the memory of x and y the product may take.
constexpr double kMostMemory = 4;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr ops::Clamp kUnclamped{-kInfinity, kInfinity};

/// The weight as [taps][filters][channels], taps in the order of a transposed convolution.
Tensor by_taps(const Overlap &o) {
  const std::int64_t taps = o.window.taps_count(), filters = o.filters(), channels = o.channels();
  Tensor result(QTN_FLOAT32, Shape{taps * filters * channels});
  const auto *from = o.weight.as<const float>();
  auto *to = result.as<float>();
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t f = 0; f < filters; ++f)
      for (std::int64_t c = 0; c < channels; ++c)
        *to++ = o.is_transposed ? from[(c * filters + f) * taps + tap] : from[(f * channels + c + 1) * taps - 1 - tap];
  return result;
}

}  // namespace

Overlap Overlap::of_transposed(const ops::Window &window, const Tensor &weight) {
  return {laid_down(window), weight, true};
}

Overlap Overlap::of_ordinary(const ops::Window &window, const Tensor &weight) {
  Overlap o{window, weight, false};
  std::swap(o.window.in, o.window.out);
  for (std::size_t axis = 0; axis < 3; ++axis)
    o.window.pad_begin[axis] = (window.kernel[axis] - 1) * window.dilation[axis] - window.pad_begin[axis];
  o.window = laid_down(o.window);
  return o;
}

bool Overlap::is_faster_than(double vectors) const {
  const auto size = [](std::int64_t of_pixel, const ops::Window::Dims &image) {
    return static_cast<double>(of_pixel) * static_cast<double>(element_count(Shape(image)));
  };
  const std::int64_t outputs = window.taps_count() * filters();
  const double x = size(channels(), window.out), y = size(filters(), window.in), product = size(outputs, window.out);
  if (!is_flat(window) || y == 0 || product > kMostMemory * (x + y)) return false;
  const double vectors_here = static_cast<double>(vectors_of(outputs)) * static_cast<double>(channels());
  return vectors_here + kAdding * static_cast<double>(outputs) <= kGain * vectors * static_cast<double>(channels());
}

void Overlap::add(Lowering &l, SlotId x, SlotId y, const Tensor &bias, const PackCache &cache) const {
  RealWeights w;
  w.groups = 1;
  w.out = static_cast<std::size_t>(window.taps_count() * filters());
  w.k = static_cast<std::size_t>(channels());
  w.weight = by_taps(*this);
  Shape shape = l.form(x).shape;
  shape[1] = static_cast<std::int64_t>(w.out);
  const SlotId products = l.real_slot(shape, channels_last_strides(shape));
  const std::size_t pixels = static_cast<std::size_t>(element_count(shape)) / w.out;
  l.add_step(make_real_gemm(l.edge(x), l.edge(products), pixels, w, kUnclamped, l.isa, cache));
  l.add_step(make_overlap_add(l.edge(products), l.edge(y), window, bias, l.clamp(), l.isa));
}

}  // namespace qtn::runtime
