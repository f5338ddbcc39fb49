// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::DepthwiseKernel;
using kernels::DepthwiseWindow;

struct Geometry {
  DepthwiseWindow window;
  std::ptrdiff_t pad_end[2], in[2];
  std::size_t channels;

  std::ptrdiff_t out(int axis) const {
    const std::ptrdiff_t reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1;
    const std::ptrdiff_t room = in[axis] + window.pad[axis] + pad_end[axis] - reach;
    return room < 0 ? 0 : room / window.stride[axis] + 1;
  }
  std::size_t taps() const { return static_cast<std::size_t>(window.kernel[0] * window.kernel[1]); }
};

Geometry square(std::ptrdiff_t kernel, std::ptrdiff_t stride, std::ptrdiff_t pad, std::ptrdiff_t height,
                std::ptrdiff_t width, std::size_t channels) {
  return {{{kernel, kernel}, {stride, stride}, {1, 1}, {pad, pad}}, {pad, pad}, {height, width}, channels};
}

enum class Values { random, extreme };

/// An image whose pixels hold more channels than are convolved, and what a convolution of it should give.
class Case {
 public:
  Case(Random &random, const Geometry &geometry, Values values)
      : g_(geometry),
        x_pixel_(g_.channels + random.in<std::size_t>(0, 20)),
        y_pixel_(g_.channels + random.in<std::size_t>(0, 20)),
        x_row_(static_cast<std::size_t>(g_.in[1]) * x_pixel_ + random.in<std::size_t>(0, 40)),
        y_row_(static_cast<std::size_t>(g_.out(1)) * y_pixel_ + random.in<std::size_t>(0, 40)),
        x_(last_pixel(g_.in[0], g_.in[1], x_row_, x_pixel_) + g_.channels, kReadSlack),
        w_(g_.taps() * g_.channels),
        bias_(g_.channels),
        multiplier_(g_.channels),
        range_(random.range()),
        outside_(static_cast<std::uint8_t>(random.zero_point())) {
    random.fill(x_.span(), 0, 255);
    random.fill(w_.span(), -128, 127);
    if (values == Values::extreme) {
      std::memset(x_.data(), 255, x_.size());
      for (std::int8_t &v : w_.span()) v = random.one_in(2) ? 127 : -128;
    }
    random.fill(bias_.span(), -20000, 20000);
    for (float &v : multiplier_.span()) v = any_multiplier(random);
    const std::ptrdiff_t rows = g_.out(0), columns = g_.out(1);
    const std::size_t count = last_pixel(rows, columns, y_row_, y_pixel_) + g_.channels;
    want_.assign(count, 0xA5);
    std::uint32_t untouched = 0xA5A5A5A5;
    want_real_.assign(count, std::bit_cast<float>(untouched));
    for (std::ptrdiff_t r = 0; r < rows; ++r)
      for (std::ptrdiff_t c = 0; c < columns; ++c)
        for (std::size_t i = 0; i < g_.channels; ++i) {
          const std::size_t at = last_pixel(r + 1, c + 1, y_row_, y_pixel_) + i;
          const std::int64_t sum = naive_sum(r, c, i);
          want_[at] = naive_requantize(sum, multiplier_[i], range_);
          want_real_[at] = std::clamp(static_cast<float>(sum) * multiplier_[i], lo_, hi_);
        }
  }

  /// Rows [0, cut), then the others, by calls of their own.
  void check(const DepthwiseKernel &kernel, std::ptrdiff_t cut) const {
    const auto packed = guarded_lines(kernel.packed_bytes(g_.window, g_.channels)),
               scratch = guarded_lines(kernel.scratch_bytes(g_.window));
    kernel.pack(packed.data(), g_.window, {w_.data(), bias_.data(), multiplier_.data(), g_.channels});
    Guarded<std::uint8_t> y(want_.size());
    Guarded<float> real(want_.size());
    for (const auto &[first, end] : {std::pair{std::ptrdiff_t{0}, cut}, std::pair{cut, g_.out(0)}}) {
      kernels::DepthwiseArgs args{g_.window,
                                  x_.data(),
                                  g_.in[0],
                                  g_.in[1],
                                  static_cast<std::ptrdiff_t>(x_row_),
                                  static_cast<std::ptrdiff_t>(x_pixel_),
                                  outside_,
                                  first,
                                  end - first,
                                  g_.out(1),
                                  g_.channels,
                                  packed.data(),
                                  y.data(),
                                  static_cast<std::ptrdiff_t>(y_row_),
                                  static_cast<std::ptrdiff_t>(y_pixel_),
                                  range_,
                                  lo_,
                                  hi_,
                                  scratch.data()};
      kernel.run_u8(args);
      args.y = real.data();
      kernel.run_f32(args);
    }
    char what[200];
    const DepthwiseWindow &w = g_.window;
    std::snprintf(what, sizeof what,
                  "in=%tdx%tdx%zu kernel=%tdx%td stride=%td,%td dilation=%td,%td pad=%td,%td,%td,%td pixels=%zu,%zu "
                  "rows=%zu,%zu",
                  g_.in[0], g_.in[1], g_.channels, w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], w.dilation[0],
                  w.dilation[1], w.pad[0], w.pad[1], g_.pad_end[0], g_.pad_end[1], x_pixel_, y_pixel_, x_row_, y_row_);
    expect_result<std::uint8_t>(y, want_, kernel.name, what);
    expect_result<float>(real, want_real_, kernel.name, what);
    assert_int_equal(packed.written_outside(), 0);
    assert_int_equal(scratch.written_outside(), 0);
  }

  void check(const DepthwiseKernel &kernel) const { check(kernel, g_.out(0) / 2); }

 private:
  /// Where the last pixel of so many rows and columns begins.
  static std::size_t last_pixel(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t row, std::size_t pixel) {
    return static_cast<std::size_t>(rows - 1) * row + static_cast<std::size_t>(columns - 1) * pixel;
  }

  std::int64_t naive_sum(std::ptrdiff_t r, std::ptrdiff_t c, std::size_t channel) const {
    const DepthwiseWindow &w = g_.window;
    std::int64_t sum = bias_[channel];
    for (std::ptrdiff_t ky = 0; ky < w.kernel[0]; ++ky)
      for (std::ptrdiff_t kx = 0; kx < w.kernel[1]; ++kx) {
        const std::ptrdiff_t iy = r * w.stride[0] - w.pad[0] + ky * w.dilation[0];
        const std::ptrdiff_t ix = c * w.stride[1] - w.pad[1] + kx * w.dilation[1];
        const bool inside = iy >= 0 && iy < g_.in[0] && ix >= 0 && ix < g_.in[1];
        const std::uint8_t x = inside ? x_[last_pixel(iy + 1, ix + 1, x_row_, x_pixel_) + channel] : outside_;
        sum += std::int64_t{x} * w_[static_cast<std::size_t>(ky * w.kernel[1] + kx) * g_.channels + channel];
      }
    return sum;
  }

  Geometry g_;
  std::size_t x_pixel_, y_pixel_, x_row_, y_row_;
  Guarded<std::uint8_t> x_;
  Guarded<std::int8_t> w_;
  Guarded<std::int32_t> bias_;
  Guarded<float> multiplier_;
  QuantizedRange range_;
  std::uint8_t outside_;
  const float lo_ = -3e4f, hi_ = std::numeric_limits<float>::infinity();
  std::vector<std::uint8_t> want_;
  std::vector<float> want_real_;
};

void test_all_channel_tails(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(1);
    for (std::size_t channels = 1; channels <= 200; ++channels)
      for (std::ptrdiff_t stride : {1, 2})
        Case(random, square(3, stride, 1, random.in(1, 6), random.in(1, 18), channels), Values::random).check(kernel);
  });
}

void test_all_sizes(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(2);
    for (std::ptrdiff_t side = 1; side <= 20; ++side)
      for (std::size_t channels : {16, 32, 64, 144})
        for (std::ptrdiff_t window : {3, 5})
          for (std::ptrdiff_t stride : {1, 2}) {
            const Geometry g = square(window, stride, window / 2, random.in(1, 20), side, channels);
            Case(random, g, Values::random).check(kernel, random.in(0, g.out(0)));
          }
  });
}

void test_all_geometries(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(3);
    for (int done = 0; done < 1500;) {
      Geometry g{};
      for (int axis : {0, 1}) {
        g.window.kernel[axis] = random.in(1, 7);
        g.window.stride[axis] = random.in(1, 3);
        g.window.dilation[axis] = random.in(1, 2);
        g.window.pad[axis] = random.in(0, 3);
        g.pad_end[axis] = random.in(0, 3);
        g.in[axis] = random.in(1, 20);
      }
      g.channels = random.in<std::size_t>(1, 200);
      if (g.out(0) == 0 || g.out(1) == 0) continue;
      Case(random, g, random.one_in(4) ? Values::extreme : Values::random).check(kernel);
      ++done;
    }
  });
}

void test_saturation_vectors(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(4);
    for (std::ptrdiff_t window : {3, 5, 7})
      for (std::ptrdiff_t stride : {1, 2})
        Case(random, square(window, stride, window / 2, 9, 11, 80), Values::extreme).check(kernel);
  });
}

/// More rows than one band of scratch holds, and a window whose strip alone is larger than that.
void test_large(void **) {
  each_kernel(kernels::depthwise_kernels(), [](const DepthwiseKernel &kernel) {
    Random random(5);
    Case(random, square(3, 1, 1, 130, 9, 24), Values::random).check(kernel);
    Case(random, square(3, 2, 1, 130, 9, 80), Values::random).check(kernel);
    Case(random, square(40, 1, 20, 41, 43, 20), Values::random).check(kernel);
    Case(random, square(20, 3, 5, 41, 43, 70), Values::random).check(kernel);
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_all_channel_tails),
      cmocka_unit_test(test_all_sizes),
      cmocka_unit_test(test_all_geometries),
      cmocka_unit_test(test_saturation_vectors),
      cmocka_unit_test(test_large),
  };
  return run_at_both_edges("kernels.depthwise", tests);
}
