// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise_real/depthwise_real.hpp"

#include <cmath>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::DepthwiseRealKernel;
using kernels::DepthwiseWindow;

struct Geometry {
  DepthwiseWindow window;
  std::ptrdiff_t in[2], out[2];
  std::size_t channels;
};

/// Any window over any image: taps may all lie outside, and outputs end where they like.
Geometry any_geometry(Random &random, std::size_t channels) {
  Geometry g{};
  g.channels = channels;
  for (int axis = 0; axis < 2; ++axis) {
    g.window.kernel[axis] = random.in(1, 5);
    g.window.stride[axis] = random.in(1, 3);
    g.window.dilation[axis] = random.in(1, 2);
    g.window.pad[axis] = random.in(0, 6);
    g.in[axis] = random.in(1, 24);
    g.out[axis] = random.in(1, 30);
  }
  return g;
}

void check(Random &random, const DepthwiseRealKernel &kernel, const Geometry &g) {
  const DepthwiseWindow &w = g.window;
  const std::size_t x_pixel = g.channels + random.in<std::size_t>(0, 20),
                    y_pixel = g.channels + random.in<std::size_t>(0, 20),
                    tap = g.channels + random.in<std::size_t>(0, 9);
  const auto pixels = static_cast<std::size_t>(g.in[0] * g.in[1]),
             taps = static_cast<std::size_t>(w.kernel[0] * w.kernel[1]);
  const auto outputs = static_cast<std::size_t>(g.out[0] * g.out[1]);
  Guarded<float> x((pixels - 1) * x_pixel + g.channels), weights((taps - 1) * tap + g.channels), bias(g.channels);
  Guarded<float> y((outputs - 1) * y_pixel + g.channels);
  for (const Guarded<float> *values : {&x, &weights, &bias})
    for (float &v : values->span()) v = random.real(-1, 1);
  float lo = -std::numeric_limits<float>::infinity(), hi = -lo;
  if (random.one_in(2)) lo = random.real(-1, 0), hi = random.real(0, 1);

  std::vector<float> want(y.size());
  std::memset(want.data(), 0xA5, want.size() * sizeof(float));
  for (std::ptrdiff_t r = 0; r < g.out[0]; ++r)
    for (std::ptrdiff_t o = 0; o < g.out[1]; ++o)
      for (std::size_t c = 0; c < g.channels; ++c) {
        float sum = bias[c];
        for (std::ptrdiff_t ky = 0; ky < w.kernel[0]; ++ky)
          for (std::ptrdiff_t kx = 0; kx < w.kernel[1]; ++kx) {
            const std::ptrdiff_t iy = r * w.stride[0] - w.pad[0] + ky * w.dilation[0];
            const std::ptrdiff_t ix = o * w.stride[1] - w.pad[1] + kx * w.dilation[1];
            if (iy < 0 || iy >= g.in[0] || ix < 0 || ix >= g.in[1]) continue;
            sum = std::fma(x[static_cast<std::size_t>(iy * g.in[1] + ix) * x_pixel + c],
                           weights[static_cast<std::size_t>(ky * w.kernel[1] + kx) * tap + c], sum);
          }
        want[static_cast<std::size_t>(r * g.out[1] + o) * y_pixel + c] = sum < lo ? lo : sum > hi ? hi : sum;
      }

  const std::ptrdiff_t cut = random.in(0, g.out[0]);  // rows [0, cut), then the others
  for (const auto &[first, end] : {std::pair{std::ptrdiff_t{0}, cut}, std::pair{cut, g.out[0]}}) {
    kernels::DepthwiseRealArgs args{};
    args.window = w;
    args.x = x.data();
    args.height = g.in[0];
    args.width = g.in[1];
    args.x_pixel = static_cast<std::ptrdiff_t>(x_pixel);
    args.first_row = first;
    args.rows = end - first;
    args.columns = g.out[1];
    args.channels = g.channels;
    args.weights = weights.data();
    args.tap = static_cast<std::ptrdiff_t>(tap);
    args.bias = bias.data();
    args.y = y.data();
    args.y_pixel = static_cast<std::ptrdiff_t>(y_pixel);
    args.lo = lo;
    args.hi = hi;
    kernel.run(args);
  }
  char what[160];
  std::snprintf(what, sizeof what, "in=%tdx%tdx%zu kernel=%tdx%td stride=%td,%td dilation=%td,%td pad=%td,%td", g.in[0],
                g.in[1], g.channels, w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], w.dilation[0], w.dilation[1],
                w.pad[0], w.pad[1]);
  expect_result<float>(y, want, kernel.name, what);
}

void test_any_window(void **) {
  each_kernel(kernels::depthwise_real_kernels(), [](const DepthwiseRealKernel &kernel) {
    Random random(1);
    for (int i = 0; i < 600; ++i) check(random, kernel, any_geometry(random, random.in<std::size_t>(1, 80)));
  });
}

void test_usual_windows(void **) {
  each_kernel(kernels::depthwise_real_kernels(), [](const DepthwiseRealKernel &kernel) {
    Random random(2);
    for (const std::ptrdiff_t size : {3, 5, 7})
      for (const std::ptrdiff_t stride : {1, 2})
        for (std::ptrdiff_t width = 1; width <= 34; width += 3) {
          const std::ptrdiff_t pad = size / 2, out = (width + 2 * pad - size) / stride + 1;
          check(random, kernel, {{{size, size}, {stride, stride}, {1, 1}, {pad, pad}}, {width, width}, {out, out}, 72});
        }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_any_window), cmocka_unit_test(test_usual_windows)};
  return run_at_both_edges("kernels.depthwise_real", tests);
}
