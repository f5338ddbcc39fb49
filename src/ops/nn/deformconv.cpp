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

/// Between the four pixels around a place; zero outside.
template <class T>
T sample(const T *plane, std::int64_t height, std::int64_t width, T row, T column) {
  if (!(row > -1 && row < static_cast<T>(height) && column > -1 && column < static_cast<T>(width))) return 0;
  const T top = std::floor(row), left = std::floor(column), down = row - top, right = column - left;
  const auto r = static_cast<std::int64_t>(top), c = static_cast<std::int64_t>(left);
  const auto pixel = [&](std::int64_t i, std::int64_t j) {
    return i >= 0 && i < height && j >= 0 && j < width ? plane[i * width + j] : T(0);
  };
  return (1 - down) * ((1 - right) * pixel(r, c) + right * pixel(r, c + 1)) +
         down * ((1 - right) * pixel(r + 1, c) + right * pixel(r + 1, c + 1));
}

/// Columns of samples, one image after the other, and a product with the weights of each group.
template <class T>
void convolve(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0), &w = *call.in(1), &offset = *call.in(2);
  const Window win = conv_window(call.attrs, x.shape(), w.shape());
  const std::int64_t group = call.attrs.get_int("group", 1), parts = call.attrs.get_int("offset_group", 1);
  const std::int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3), taps = win.taps_count(),
                     out = win.outputs_count(), filters = w.dim(0) / group, depth = w.dim(1) * taps;
  CountedVector<T> columns((Size(channels) * taps * out).value());
  const T *mask = call.in(4) ? call.in(4)->as<const T>() : nullptr;
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    parallel_for(static_cast<std::size_t>(channels), [&](std::size_t index) {
      const auto c = static_cast<std::int64_t>(index), part = c / (channels / parts);
      const T *plane = x.as<const T>() + (n * channels + c) * height * width;
      T *to = columns.data() + c * taps * out;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t of_tap = (n * parts + part) * taps + tap;
        const T *rows = offset.as<const T>() + 2 * of_tap * out, *shifts = rows + out;
        for (std::int64_t o = 0; o < out; ++o) {
          const std::int64_t i = o / win.out[1] * win.stride[0] - win.pad_begin[0] +
                                 tap / win.kernel[1] * win.dilation[0],
                             j = o % win.out[1] * win.stride[1] - win.pad_begin[1] +
                                 tap % win.kernel[1] * win.dilation[1];
          const T v = sample(plane, height, width, static_cast<T>(i) + rows[o], static_cast<T>(j) + shifts[o]);
          *to++ = mask ? v * mask[of_tap * out + o] : v;
        }
      }
    });
    T *image = y.as<T>() + n * w.dim(0) * out;
    for (std::int64_t f = 0; f < w.dim(0); ++f)
      std::fill_n(image + f * out, out, call.in(3) ? call.in(3)->as<const T>()[f] : T(0));
    for (std::int64_t g = 0; g < group; ++g)
      blas::gemm(filters, out, depth, T(1), w.as<const T>() + g * filters * depth, {depth},
                 columns.data() + g * depth * out, {out}, T(1), image + g * filters * out, out);
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
