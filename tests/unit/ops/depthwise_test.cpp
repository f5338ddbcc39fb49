// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions in float32 against those by matrix products in float64.
#include "ops/common/depthwise.hpp"

#include <cmath>
#include <optional>
#include <random>

#include "check.hpp"

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

/// nullopt where the kernel does not fit the input.
std::optional<Convolution> any_depthwise(std::size_t rank) {
  const std::int64_t groups = any(2, 5), multiplier = any(1, 2);
  Shape x{any(1, 2), groups}, weight{groups * multiplier, 1};
  std::vector<std::int64_t> strides, dilations, pads;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    x.push_back(any(1, 20));
    weight.push_back(any(1, 4));
    strides.push_back(any(1, 3));
    dilations.push_back(any(1, 2));
  }
  for (std::size_t i = 0; i < 2 * rank; ++i) pads.push_back(any(0, 3));
  const Attrs a = attrs({{"strides", strides}, {"dilations", dilations}, {"pads", pads}});
  try {
    return Convolution{x[0], groups, weight[0], groups, conv_window(a, x, weight).lifted()};
  } catch (const Error &) {
    return std::nullopt;
  }
}

void equals_products(void **) {
  std::size_t checked = 0;
  for (int i = 0; i < 600; ++i) {
    const auto conv = any_depthwise(1 + static_cast<std::size_t>(i) % 3);
    if (!conv) continue;
    const std::vector<float> x = any_floats(conv->images * conv->channels * conv->in_size());
    const std::vector<float> weight = any_floats(conv->filters * conv->patch());
    const std::vector<float> bias = any_floats(conv->filters);
    const std::int64_t out = conv->out_size();
    std::vector<double> want;
    for (std::int64_t plane = 0; plane < conv->images * conv->filters; ++plane)
      want.insert(want.end(), static_cast<std::size_t>(out), bias[static_cast<std::size_t>(plane % conv->filters)]);
    convolve(*conv, x.data(), 0.0f, std::vector<double>(weight.begin(), weight.end()).data(), want.data());
    std::vector<float> got(want.size(), NAN);
    assert_true(run_depthwise(*conv, x.data(), weight.data(), bias.data(), got.data()));
    for (std::size_t k = 0; k < want.size(); ++k)
      if (!(std::abs(got[k] - want[k]) < 1e-5)) fail_test("case ", i, ": y[", k, "] is ", got[k], ", not ", want[k]);
    ++checked;
  }
  assert_in_range(checked, 400, 600);
}

void leaves_the_rest_to_others(void **) {
  const auto conv = [](const Shape &x, const Shape &weight, std::int64_t groups, std::vector<std::int64_t> pads) {
    const Attrs a = attrs({{"pads", std::move(pads)}});
    return Convolution{x[0], x[1], weight[0], groups, conv_window(a, x, weight).lifted()};
  };
  float y = 7;
  assert_false(run_depthwise(conv({1, 1, 4}, {1, 1, 2}, 1, {0, 0}), nullptr, nullptr, nullptr, &y));
  assert_false(run_depthwise(conv({1, 4, 4}, {4, 2, 2}, 2, {0, 0}), nullptr, nullptr, nullptr, &y));
  assert_false(run_depthwise(conv({1, 2, 4}, {2, 1, 2}, 2, {1 << 30, 0}), nullptr, nullptr, nullptr, &y));
  assert_true(y == 7);
}

}  // namespace
}  // namespace qtn::ops

int main() {
  using namespace qtn::ops;
  const CMUnitTest tests[] = {cmocka_unit_test(equals_products), cmocka_unit_test(leaves_the_rest_to_others)};
  return cmocka_run_group_tests_name("depthwise", tests, nullptr, nullptr);
}
