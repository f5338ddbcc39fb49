// SPDX-License-Identifier: Apache-2.0
// A convolution in float32 and its gradients against their definition in double, in all the forms that they are
// computed in, with the same bits on any number of threads and any instruction set.
#include "ops/common/conv_gradient.hpp"

#include <cmath>
#include <optional>
#include <random>

#include "base/cpu.hpp"
#include "ops/common/conv_planes.hpp"
#include "support.hpp"

namespace qtn::ops {
namespace {

using namespace qtn::test;

std::mt19937 engine(1);

std::int64_t any(std::int64_t lo, std::int64_t hi) {
  return std::uniform_int_distribution<std::int64_t>(lo, hi)(engine);
}

std::vector<float> any_floats(std::int64_t count) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(uniform(engine));
  return values;
}

struct Numbers {
  std::vector<double> y, dx, dw;
};

/// Calls f(element of x, element of dw, element of y) for every product of a convolution.
template <class F>
void for_products(const Convolution &c, F &&f) {
  const Window &w = c.window;
  const std::int64_t filters = c.filters / c.groups, channels = c.channels / c.groups, taps = w.taps_count();
  const auto inside = [&](const Window::Dims &o, const Window::Dims &k, std::int64_t &at) {
    at = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t i = o[axis] * w.stride[axis] - w.pad_begin[axis] + k[axis] * w.dilation[axis];
      if (i < 0 || i >= w.in[axis]) return false;
      at = at * w.in[axis] + i;
    }
    return true;
  };
  const auto place = [](std::int64_t index, const Window::Dims &dims) {
    return Window::Dims{index / dims[2] / dims[1], index / dims[2] % dims[1], index % dims[2]};
  };
  for (std::int64_t n = 0; n < c.images; ++n)
    for (std::int64_t m = 0; m < c.filters; ++m)
      for (std::int64_t o = 0; o < c.out_size(); ++o)
        for (std::int64_t k = 0; k < channels * taps; ++k) {
          std::int64_t at;
          if (!inside(place(o, w.out), place(k % taps, w.kernel), at)) continue;
          const std::int64_t channel = m / filters * channels + k / taps;
          f(static_cast<std::size_t>((n * c.channels + channel) * c.in_size() + at),
            static_cast<std::size_t>(m * c.patch() + k),
            static_cast<std::size_t>((n * c.filters + m) * c.out_size() + o));
        }
}

Numbers definition(const Convolution &c, const std::vector<float> &x, const std::vector<float> &w,
                   const std::vector<float> &dy) {
  Numbers n{std::vector<double>(dy.size()), std::vector<double>(x.size()), std::vector<double>(w.size())};
  for_products(c, [&](std::size_t i, std::size_t k, std::size_t o) {
    n.y[o] += static_cast<double>(x[i]) * static_cast<double>(w[k]);
    n.dx[i] += static_cast<double>(dy[o]) * static_cast<double>(w[k]);
    n.dw[k] += static_cast<double>(dy[o]) * static_cast<double>(x[i]);
  });
  return n;
}

void expect_close(const std::vector<float> &got, const std::vector<double> &want, const std::string &what) {
  double largest = 1;
  for (const double v : want) largest = std::max(largest, std::fabs(v));
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!(std::fabs(static_cast<double>(got[i]) - want[i]) <= 2e-6 * largest))
      fail_test(what, "[", i, "] is ", got[i], ", not ", want[i]);
}

struct Answers {
  std::vector<float> y, dx, dw;
  std::vector<float> added;  ///< dx to x
  bool operator==(const Answers &) const = default;
};

Answers computed(const Convolution &c, const std::vector<float> &x, const std::vector<float> &w,
                 const std::vector<float> &dy) {
  Answers a{std::vector<float>(dy.size(), NAN), std::vector<float>(x.size(), NAN), std::vector<float>(w.size(), NAN),
            x};
  Scratch scratch;
  const ConvRuns runs(c);
  runs.forward(x.data(), w.data(), a.y.data(), scratch);
  runs.input_gradient(w.data(), dy.data(), a.dx.data(), false, scratch);
  runs.input_gradient(w.data(), dy.data(), a.added.data(), true, scratch);
  runs.weight_gradient(x.data(), dy.data(), a.dw.data(), scratch);
  return a;
}

void check(const Convolution &c, const std::string &name) {
  const std::vector<float> x = any_floats(c.images * c.channels * c.in_size()), w = any_floats(c.filters * c.patch());
  const std::vector<float> dy = any_floats(c.images * c.filters * c.out_size());
  const Answers got = computed(c, x, w, dy);
  Numbers want = definition(c, x, w, dy);
  expect_close(got.y, want.y, name + ": y");
  expect_close(got.dx, want.dx, name + ": dx");
  expect_close(got.dw, want.dw, name + ": dw");
  for (std::size_t i = 0; i < x.size(); ++i) want.dx[i] += static_cast<double>(x[i]);
  expect_close(got.added, want.dx, name + ": dx added");
  for (const int threads : {1, 2, 3}) {
    const ThreadScope scope(threads);
    if (!(computed(c, x, w, dy) == got)) fail_test(name, ": other bits on ", threads, " threads");
  }
  if (!fits_planes(c) || c.pointwise()) return;
  const std::string level = isa_name(isa());
  set_isa("scalar");
  const bool same = computed(c, x, w, dy) == got;
  set_isa(level.c_str());
  if (!same) fail_test(name, ": other bits without vectors");
}

std::optional<Convolution> any_convolution(std::size_t rank) {
  const std::int64_t groups = any(1, 3) == 1 ? any(2, 4) : 1;
  Shape x{any(1, 3), groups * any(1, 6)};
  Shape weight{groups * any(1, 20), x[1] / groups};
  std::vector<std::int64_t> strides, dilations, pads;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    x.push_back(any(1, rank == 3 ? 8 : 24));
    weight.push_back(any(1, 4));
    strides.push_back(any(1, 5));
    dilations.push_back(any(1, 3));
  }
  for (std::size_t i = 0; i < 2 * rank; ++i) pads.push_back(any(0, 3));
  const Attrs a = attrs({{"strides", strides}, {"dilations", dilations}, {"pads", pads}});
  try {
    return Convolution{x[0], x[1], weight[0], groups, conv_window(a, x, weight).lifted()};
  } catch (const Error &) {
    return std::nullopt;
  }
}

void equals_its_definition(void **) {
  std::size_t checked = 0, planes = 0;
  for (int i = 0; i < 300; ++i) {
    const auto conv = any_convolution(1 + static_cast<std::size_t>(i) % 3);
    if (!conv) continue;
    check(*conv, cat("case ", i));
    planes += fits_planes(*conv);
    ++checked;
  }
  assert_in_range(checked, 150, 300);
  assert_in_range(planes, 60, checked - 60);
}

/// Large enough to be cut: into bands, parts, blocks of channels, ranges of filters.
void is_cut_into_parts(void **) {
  const auto conv = [](const Shape &x, const Shape &weight, std::int64_t groups, const Attrs &a) {
    return Convolution{x[0], x[1], weight[0], groups, conv_window(a, x, weight).lifted()};
  };
  const Attrs padded = attrs({{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  const Attrs strided =
      attrs({{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}, {"strides", std::vector<std::int64_t>{2, 2}}});
  check(conv({2, 40, 70, 60}, {5, 40, 3, 3}, 1, padded), "bands");
  check(conv({2, 30, 71, 60}, {4, 30, 3, 3}, 1, strided), "bands of a stride");
  check(conv({1, 2, 300, 250}, {2, 1, 5, 5}, 2, attrs({})), "bands of a channel");
  check(conv({20, 3, 9, 8}, {41, 3, 3, 3}, 1, padded), "images together");
  check(conv({6, 20, 8, 9}, {24, 20, 3, 3}, 1, padded), "flush rows");
  check(conv({6, 20, 9, 8}, {24, 20, 3, 3}, 1, strided), "flush rows of a stride");
  check(conv({70, 16, 4, 4}, {16, 16, 5, 4}, 1, padded), "flush rows of many images");
  check(conv({3, 80, 30, 31}, {7, 80, 1, 1}, 1, attrs({})), "pointwise");
  check(conv({0, 3, 6, 5}, {4, 3, 3, 3}, 1, padded), "no image");
  check(conv({2, 3, 6, 5}, {0, 3, 3, 3}, 1, padded), "no filter");
  check(conv({2, 0, 6, 5}, {4, 0, 3, 3}, 1, padded), "no channel");
  check(conv({5, 7, 1, 1}, {6, 7, 1, 1}, 1, attrs({})), "one position");
  check(conv({2, 6, 12, 14, 13}, {9, 6, 3, 3, 3}, 1, attrs({})), "volume");
  // Padding that copies of the planes would be out of proportion with.
  check(
      conv({2, 3, 5, 4}, {4, 3, 3, 3}, 1,
           attrs({{"pads", std::vector<std::int64_t>{40, 0, 41, 0}}, {"dilations", std::vector<std::int64_t>{40, 1}}})),
      "far padding");
}

}  // namespace
}  // namespace qtn::ops

int main() {
  using namespace qtn::ops;
  const CMUnitTest tests[] = {cmocka_unit_test(equals_its_definition), cmocka_unit_test(is_cut_into_parts)};
  return cmocka_run_group_tests_name("ops/conv_gradient", tests, nullptr, nullptr);
}
