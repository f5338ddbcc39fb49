// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/counted.hpp"
#include "base/parallel.hpp"
#include "base/size.hpp"
#include "blas/gemm.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/window.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"dilations", AttrSpec::kInts},    {"group", AttrSpec::kInt},
                               {"kernel_shape", AttrSpec::kInts}, {"offset_group", AttrSpec::kInt},
                               {"pads", AttrSpec::kInts},         {"strides", AttrSpec::kInts}};
constexpr const char *kName = "DeformConv";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &w = *call.in(1);
  require_real(kName, "x", &x);
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    if (call.in(i)) require_same_dtype(kName, x, *call.in(i));
  if (x.rank() != 4) fail(QTN_EUNSUPPORTED, kName, ": x is ", to_string(x.shape()), ", only images are supported");
  const Window window = conv_window(call.attrs, x.shape(), w.shape());
  const std::int64_t group = call.attrs.get_int("group", 1), parts = call.attrs.get_int("offset_group", 1);
  if (group < 1 || w.dim(0) % group != 0 || x.dim(1) % group != 0 || w.dim(1) != x.dim(1) / group || parts < 1 ||
      x.dim(1) % parts != 0)
    fail(QTN_ESHAPE, kName, ": x is ", to_string(x.shape()), ", w ", to_string(w.shape()), ", group ", group,
         ", offset_group ", parts);
  const std::int64_t taps = mul_dims(kName, parts, window.taps_count());
  const auto expect = [&](std::size_t i, const char *name, const Shape &shape) {
    if (call.in(i) && !(call.in(i)->shape() == shape))
      fail(QTN_ESHAPE, kName, ": ", name, " is ", to_string(call.in(i)->shape()), ", ", to_string(shape),
           " is expected");
  };
  expect(2, "offset", {x.dim(0), mul_dims(kName, 2, taps), window.out[0], window.out[1]});
  expect(3, "B", {w.dim(0)});
  expect(4, "mask", {x.dim(0), taps, window.out[0], window.out[1]});
  return {{x.dtype(), {x.dim(0), w.dim(0), window.out[0], window.out[1]}}};
}

struct Image {
  std::int64_t height, width;
};

/// Where a tap lies: the pixel above it and to its left, and how far it is from that.
template <class T>
struct Place {
  std::int64_t row, column;
  T down, right;
  bool is_inside;  ///< all four pixels around it
};

/// Beside pixels that are zero where it lies a whole pixel outside, or nowhere.
template <class T>
Place<T> place_of(const Image &image, T row, T column) {
  const bool is_near =
      row > -1 && row < static_cast<T>(image.height) && column > -1 && column < static_cast<T>(image.width);
  if (!is_near) return {-2, -2, 0, 0, false};
  const T top = std::floor(row), left = std::floor(column);
  const auto r = static_cast<std::int64_t>(top), c = static_cast<std::int64_t>(left);
  return {r, c, row - top, column - left, r >= 0 && c >= 0 && r + 1 < image.height && c + 1 < image.width};
}

/// Between the four pixels around a place; zero outside.
template <class T>
T sample(const T *plane, const Image &image, const Place<T> &p) {
  const auto between = [&](const auto &pixel) {
    return (1 - p.down) * ((1 - p.right) * pixel(0, 0) + p.right * pixel(0, 1)) +
           p.down * ((1 - p.right) * pixel(1, 0) + p.right * pixel(1, 1));
  };
  if (p.is_inside) {
    const T *first = plane + p.row * image.width + p.column;
    return between([&](std::int64_t i, std::int64_t j) { return first[i * image.width + j]; });
  }
  return between([&](std::int64_t i, std::int64_t j) {
    const std::int64_t r = p.row + i, c = p.column + j;
    return r >= 0 && r < image.height && c >= 0 && c < image.width ? plane[r * image.width + c] : T(0);
  });
}

/// The places of a tap for a row of outputs, moved by `down` and `right`.
template <class T>
void find_places(const Window &win, const Image &image, std::int64_t tap, std::int64_t row, const T *down,
                 const T *right, Place<T> *places) {
  const std::int64_t i = row * win.stride[0] - win.pad_begin[0] + tap / win.kernel[1] * win.dilation[0],
                     j = tap % win.kernel[1] * win.dilation[1] - win.pad_begin[1];
  for (std::int64_t o = 0; o < win.out[1]; ++o)
    places[o] = place_of(image, static_cast<T>(i) + down[o], static_cast<T>(o * win.stride[1] + j) + right[o]);
}

/// Columns of samples, one image after the other, and a product with the weights of each group.
template <class T>
void convolve(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0), &w = *call.in(1), &offset = *call.in(2);
  const Window win = conv_window(call.attrs, x.shape(), w.shape());
  const std::int64_t group = call.attrs.get_int("group", 1), parts = call.attrs.get_int("offset_group", 1);
  const std::int64_t channels = x.dim(1), taps = win.taps_count(), out = win.outputs_count(),
                     filters = w.dim(0) / group, depth = w.dim(1) * taps, of_part = channels / parts;
  const Image image{x.dim(2), x.dim(3)};
  CountedVector<T> columns((Size(channels) * taps * out).value());
  const T *mask = call.in(4) ? call.in(4)->as<const T>() : nullptr;
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    parallel_for(static_cast<std::size_t>(parts * taps * win.out[0]), [&](std::size_t index) {
      const auto at = static_cast<std::int64_t>(index), row = at % win.out[0], of_tap = at / win.out[0],
                 part = of_tap / taps, tap = of_tap % taps, length = win.out[1], begin = row * length;
      const T *down = offset.as<const T>() + 2 * (n * parts * taps + of_tap) * out + begin, *right = down + out;
      const T *gates = mask ? mask + (n * parts * taps + of_tap) * out + begin : nullptr;
      CountedVector<Place<T>> places(static_cast<std::size_t>(length));
      find_places(win, image, tap, row, down, right, places.data());
      for (std::int64_t c = part * of_part; c < (part + 1) * of_part; ++c) {
        const T *plane = x.as<const T>() + (n * channels + c) * image.height * image.width;
        T *to = columns.data() + (c * taps + tap) * out + begin;
        for (std::int64_t o = 0; o < length; ++o) to[o] = sample(plane, image, places[static_cast<std::size_t>(o)]);
        for (std::int64_t o = 0; gates && o < length; ++o) to[o] *= gates[o];
      }
    });
    T *results = y.as<T>() + n * w.dim(0) * out;
    for (std::int64_t f = 0; f < w.dim(0); ++f)
      std::fill_n(results + f * out, out, call.in(3) ? call.in(3)->as<const T>()[f] : T(0));
    for (std::int64_t g = 0; g < group; ++g)
      blas::gemm(filters, out, depth, T(1), w.as<const T>() + g * filters * depth, {depth},
                 columns.data() + g * depth * out, {out}, T(1), results + g * filters * out, out);
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? convolve<double>(call, outputs[0]) : convolve<float>(call, outputs[0]);
}

double work(const Call &call) { return static_cast<double>(call.in(1)->count()); }

}  // namespace

const OpDef kDeformConv{.name = kName,
                        .min_inputs = 3,
                        .max_inputs = 5,
                        .max_outputs = 1,
                        .attrs = kAttrs,
                        .infer = infer,
                        .run = run,
                        .work = work};

}  // namespace qtn::ops
