// SPDX-License-Identifier: Apache-2.0
#include "kernels/winograd/winograd.hpp"

#include <algorithm>
#include <bit>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::WinogradKernel;

/// Windows of 3x3 that may reach out of the image at the end, too.
struct Geometry {
  std::ptrdiff_t in[2], out[2], pad[2];
  std::size_t channels, n, planes = 1;

  kernels::WinogradDepth depth() const { return {planes, channels}; }
};

Geometry padded(std::ptrdiff_t height, std::ptrdiff_t width, std::size_t channels, std::size_t n) {
  return {{height, width}, {height, width}, {1, 1}, channels, n};
}

enum class Values { random, extreme };

/// An image whose pixels hold more channels than are convolved, and the sums that a convolution of it should give.
class Case {
 public:
  Case(Random &random, const Geometry &geometry, Values values)
      : g_(geometry),
        x_pixel_(g_.channels + random.in<std::size_t>(0, 20)),
        y_pixel_(g_.n + random.in<std::size_t>(0, 20)),
        x_row_(static_cast<std::size_t>(g_.in[1]) * x_pixel_ + random.in<std::size_t>(0, 40)),
        y_row_(static_cast<std::size_t>(g_.out[1]) * y_pixel_ + random.in<std::size_t>(0, 40)),
        x_plane_(static_cast<std::size_t>(g_.in[0]) * x_row_),
        x_((g_.planes - 1) * x_plane_ + place(g_.in[0] - 1, g_.in[1] - 1, x_row_, x_pixel_) + g_.channels, kReadSlack),
        w_(g_.n * g_.planes * 9 * g_.channels),
        bias_(g_.n),
        multiplier_(g_.n),
        range_(random.range()),
        outside_(static_cast<std::uint8_t>(random.zero_point())) {
    for (std::size_t i = 0; i < g_.planes; ++i)
      planes_.push_back(g_.planes > 1 && random.one_in(3) ? nullptr : x_.data() + i * x_plane_);
    random.fill(x_.span(), 0, 255);
    random.fill(w_.span(), -128, 127);
    random.fill(bias_.span(), -20000, 20000);
    if (values == Values::extreme) {
      std::memset(x_.data(), 255, x_.size());
      const bool mixed = random.one_in(2);
      for (std::int8_t &v : w_.span()) v = mixed && random.one_in(2) ? 127 : -128;
      random.fill(bias_.span(), -1600000000, 1600000000);
    }
    for (float &v : multiplier_.span()) v = any_multiplier(random);
    const std::size_t count = place(g_.out[0] - 1, g_.out[1] - 1, y_row_, y_pixel_) + g_.n;
    want_.assign(count, 0xA5);
    const std::uint32_t untouched = 0xA5A5A5A5;
    want_real_.assign(count, std::bit_cast<float>(untouched));
    for (std::ptrdiff_t r = 0; r < g_.out[0]; ++r)
      for (std::ptrdiff_t c = 0; c < g_.out[1]; ++c)
        for (std::size_t i = 0; i < g_.n; ++i) {
          const std::size_t at = place(r, c, y_row_, y_pixel_) + i;
          const std::int64_t sum = naive_sum(r, c, i);
          want_[at] = naive_requantize(sum, multiplier_[i], range_);
          want_real_[at] = std::clamp(static_cast<float>(sum) * multiplier_[i], lo_, hi_);
        }
  }

  /// Rows [0, cut) and the others, columns likewise, which are two or more each, and of these outputs [0, nr) and the
  /// others, by calls of their own.
  void check(const WinogradKernel &kernel, std::ptrdiff_t row, std::ptrdiff_t column) const {
    const auto packed = guarded_lines(kernel.packed_bytes(g_.n, g_.depth()));
    kernel.pack(packed.data(), {w_.data(), bias_.data(), multiplier_.data(), g_.n, g_.depth()});
    Guarded<std::uint8_t> y(want_.size());
    Guarded<float> real(want_.size());
    for (const auto &[top, bottom] : {std::pair{std::ptrdiff_t{0}, row}, std::pair{row, g_.out[0]}})
      for (const auto &[left, right] : {std::pair{std::ptrdiff_t{0}, column}, std::pair{column, g_.out[1]}})
        for (std::size_t j = 0; j < g_.n && top != bottom && left != right; j += j ? g_.n : kernel.nr) {
          const auto scratch = guarded_lines(kernel.scratch_bytes(bottom - top, right - left, g_.depth()));
          kernels::WinogradArgs args{planes_.data(),
                                     g_.in[0],
                                     g_.in[1],
                                     static_cast<std::ptrdiff_t>(x_row_),
                                     static_cast<std::ptrdiff_t>(x_pixel_),
                                     {g_.pad[0], g_.pad[1]},
                                     outside_,
                                     top,
                                     bottom - top,
                                     left,
                                     right - left,
                                     g_.depth(),
                                     j ? g_.n - j : std::min(g_.n, kernel.nr),
                                     packed.data() + kernel.packed_bytes(j, g_.depth()),
                                     y.data() + j,
                                     static_cast<std::ptrdiff_t>(y_row_),
                                     static_cast<std::ptrdiff_t>(y_pixel_),
                                     range_,
                                     lo_,
                                     hi_,
                                     scratch.data()};
          kernel.run_u8(args);
          args.y = real.data() + j;
          kernel.run_f32(args);
          assert_int_equal(scratch.written_outside(), 0);
        }
    char what[160];
    std::snprintf(what, sizeof what,
                  "planes=%zu in=%tdx%tdx%zu out=%tdx%tdx%zu pad=%td,%td cut=%td,%td pixels=%zu,%zu rows=%zu,%zu",
                  g_.planes, g_.in[0], g_.in[1], g_.channels, g_.out[0], g_.out[1], g_.n, g_.pad[0], g_.pad[1], row,
                  column, x_pixel_, y_pixel_, x_row_, y_row_);
    expect_result<std::uint8_t>(y, want_, kernel.name, what);
    expect_result<float>(real, want_real_, kernel.name, what);
    assert_int_equal(packed.written_outside(), 0);
  }

 private:
  static std::size_t place(std::ptrdiff_t r, std::ptrdiff_t c, std::size_t row, std::size_t pixel) {
    return static_cast<std::size_t>(r) * row + static_cast<std::size_t>(c) * pixel;
  }

  std::int64_t naive_sum(std::ptrdiff_t r, std::ptrdiff_t c, std::size_t output) const {
    std::int64_t sum = bias_[output];
    const std::int8_t *w = w_.data() + output * g_.planes * 9 * g_.channels;
    for (const std::uint8_t *plane : planes_)
      for (std::ptrdiff_t ky = 0; ky < 3; ++ky)
        for (std::ptrdiff_t kx = 0; kx < 3; ++kx, w += g_.channels) {
          const std::ptrdiff_t iy = r - g_.pad[0] + ky, ix = c - g_.pad[1] + kx;
          const bool inside = plane && iy >= 0 && iy < g_.in[0] && ix >= 0 && ix < g_.in[1];
          const std::uint8_t *x = inside ? plane + place(iy, ix, x_row_, x_pixel_) : nullptr;
          for (std::size_t i = 0; i < g_.channels; ++i) sum += std::int64_t{x ? x[i] : outside_} * w[i];
        }
    return sum;
  }

  Geometry g_;
  std::size_t x_pixel_, y_pixel_, x_row_, y_row_, x_plane_;
  std::vector<const std::uint8_t *> planes_;
  Guarded<std::uint8_t> x_;
  Guarded<std::int8_t> w_;
  Guarded<std::int32_t> bias_;
  Guarded<float> multiplier_;
  QuantizedRange range_;
  std::uint8_t outside_;
  float lo_ = -1e4f, hi_ = 1e4f;
  std::vector<std::uint8_t> want_;
  std::vector<float> want_real_;
};

void test_all_tails(void **) {
  each_kernel(kernels::winograd_kernels(), [](const WinogradKernel &kernel) {
    Random random(1);
    for (std::size_t count = 1; count <= 70; ++count) {
      Case(random, padded(random.in(2, 7), random.in(2, 9), count, random.in<std::size_t>(1, 40)), Values::random)
          .check(kernel, 0, 0);
      Case(random, padded(random.in(2, 7), random.in(2, 9), random.in<std::size_t>(1, 40), count), Values::random)
          .check(kernel, 0, 0);
    }
  });
}

void test_all_geometries(void **) {
  each_kernel(kernels::winograd_kernels(), [](const WinogradKernel &kernel) {
    Random random(2);
    for (int i = 0; i < 600; ++i) {
      Geometry g{};
      for (int axis : {0, 1}) {
        g.in[axis] = random.in(1, 20);
        g.out[axis] = random.in(2, 24);
        g.pad[axis] = random.in(0, 5);
      }
      g.channels = random.in<std::size_t>(1, 50);
      g.n = random.in<std::size_t>(1, 50);
      g.planes = random.one_in(3) ? random.in<std::size_t>(2, 5) : 1;
      std::ptrdiff_t cut[2];
      for (int axis : {0, 1}) cut[axis] = g.out[axis] < 4 ? 0 : random.in<std::ptrdiff_t>(2, g.out[axis] - 2);
      Case(random, g, random.one_in(4) ? Values::extreme : Values::random).check(kernel, cut[0], cut[1]);
    }
  });
}

void test_largest_sums(void **) {
  each_kernel(kernels::winograd_kernels(), [](const WinogradKernel &kernel) {
    Random random(3);
    for (int i = 0; i < 4; ++i)
      Case(random, padded(4, 4, WinogradKernel::kMostChannels, 17), Values::extreme).check(kernel, 2, 0);
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_all_tails),
      cmocka_unit_test(test_all_geometries),
      cmocka_unit_test(test_largest_sums),
  };
  return run_at_both_edges("kernels.winograd", tests);
}
