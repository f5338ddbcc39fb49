// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.hpp"

#include <algorithm>

#include "support.hpp"

namespace qtn::test {
namespace {

using kernels::Activation;
using kernels::ActivationKernel;

/// An activation in long double, by the C library's functions.
struct Definition {
  Activation f;
  const char *name;
  long double (*value)(long double x), (*slope)(long double x);
  bool by_output;
  double units = 0.51;  ///< in the last place of float32, by which values may be off
};

long double normal(long double x) { return 0.5L * std::erfc(-x / std::sqrt(2.0L)); }
long double cubic(long double x) { return std::sqrt(2 / M_PIl) * (x + 0.044715L * x * x * x); }
long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double soft(long double x) { return std::tanh(std::log1p(std::exp(x))); }
long double sech2(long double x) { return 1 / (std::cosh(x) * std::cosh(x)); }

const Definition kDefinitions[] = {
    {Activation::erf, "erf", [](long double x) { return std::erf(x); },
     [](long double x) { return 2 / std::sqrt(M_PIl) * std::exp(-x * x); }, false, 0.8},
    {Activation::exp, "exp", [](long double x) { return std::exp(x); }, [](long double y) { return y; }, true, 0.75},
    // By way of comparison, x / 2 * erfcf(-x / sqrt(2)) is off by 25 units at -7.
    {Activation::gelu, "gelu", [](long double x) { return x * normal(x); },
     [](long double x) { return normal(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PIl); }, false, 4},
    {Activation::gelu_by_tanh, "gelu by tanh", [](long double x) { return x * sigmoid(2 * cubic(x)); },
     [](long double x) {
       const long double inner = std::sqrt(2 / M_PIl) * (1 + 3 * 0.044715L * x * x);
       return sigmoid(2 * cubic(x)) + x / 2 * sech2(cubic(x)) * inner;
     },
     false, 2.2},
    {Activation::mish, "mish", [](long double x) { return x * soft(x); },
     [](long double x) { return soft(x) + x * sech2(std::log1p(std::exp(x))) * sigmoid(x); }, false},
    {Activation::sigmoid, "sigmoid", [](long double x) { return sigmoid(x); },
     [](long double y) { return y * (1 - y); }, true, 1.6},
    {Activation::tanh, "tanh", [](long double x) { return std::tanh(x); }, [](long double y) { return 1 - y * y; },
     true, 1.2},
    {Activation::hard_swish, "hard swish",
     [](long double x) { return x * std::fmin(std::fmax(x / 6 + 0.5L, 0.0L), 1.0L); },
     [](long double x) { return x <= -3  ? 0
                                : x >= 3 ? 1
                                         : x / 3 + 0.5L; }, false},
    {Activation::atan, "atan", [](long double x) { return std::atan(x); },
     [](long double x) { return 1 / (1 + x * x); }, false},
    {Activation::cos, "cos", [](long double x) { return std::cos(x); }, [](long double x) { return -std::sin(x); },
     false},
    {Activation::log, "log", [](long double x) { return x < 0 ? NAN : std::log(x); },
     [](long double x) { return 1 / x; }, false},
    {Activation::sin, "sin", [](long double x) { return std::sin(x); }, [](long double x) { return std::cos(x); },
     false},
    {Activation::softplus, "softplus",
     [](long double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }, sigmoid, false},
    {Activation::relu, "relu", [](long double x) { return x > 0 ? x : 0; },
     [](long double y) { return y > 0 ? 1.0L : 0.0L; }, true},
};

/// Both signs, of all sizes.
std::vector<float> arguments(Random &random, std::size_t count) {
  std::vector<float> x;
  for (std::size_t i = 0; i < count; ++i) {
    const float size = random.one_in(2) ? random.real(0, 8) : std::exp2(random.real(-40, 7));
    x.push_back(random.one_in(2) ? size : -size);
  }
  return x;
}

/// Within so many units in the last place of float32 (of hard swish three roundings of terms up to `scale`).
void expect_close(const ActivationKernel &kernel, const Definition &d, float x, float got, long double want,
                  double units, long double scale) {
  const long double unit = std::fmax(std::fabs(want) * 0x1p-23L, 0x1p-149L);
  const long double allowed =
      d.f == Activation::hard_swish ? 3 * scale * 0x1p-24L : static_cast<long double>(units) * unit;
  if (std::fabs(want) > static_cast<long double>(std::numeric_limits<float>::max()) && std::isinf(got)) return;
  if (std::isnan(want) && std::isnan(got)) return;
  if (!(std::fabs(static_cast<long double>(got) - want) <= allowed))
    fail_msg("%s: %s at %a is %a, not %La", kernel.name, d.name, static_cast<double>(x), static_cast<double>(got),
             want);
}

void test_values(void **) {
  each_kernel(kernels::activation_kernels(), [](const ActivationKernel &kernel) {
    Random random(1);
    const std::vector<float> x = arguments(random, 20000), ones(x.size(), 1);
    std::vector<float> y(x.size()), dx(x.size());
    for (const Definition &d : kDefinitions) {
      kernel.run(d.f, x.data(), y.data(), x.size());
      const std::vector<float> &at = d.by_output ? y : x;
      kernel.backward(d.f, at.data(), ones.data(), dx.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto wide = static_cast<long double>(x[i]), place = static_cast<long double>(at[i]);
        expect_close(kernel, d, x[i], y[i], d.value(wide), d.units, std::fabs(wide));
        // Slopes cancel where they change sign.
        const long double slope = d.slope(place);
        if (d.by_output || std::fabs(slope) > 1e-3L) expect_close(kernel, d, x[i], dx[i], slope, 0.51, 1);
      }
    }
  });
}

/// Many turns, near and beyond the angles of which all digits count.
void test_far_angles(void **) {
  each_kernel(kernels::activation_kernels(), [](const ActivationKernel &kernel) {
    Random random(4);
    for (const double largest : {1e3, 1e6, 1e9, 3e38}) {
      std::vector<float> x(5000), y(x.size());
      for (float &v : x) v = static_cast<float>(random.real(-largest, largest));
      for (std::size_t i = 0; i < 500; ++i) x[i] = static_cast<float>(M_PI_2 * std::floor(random.real(0, largest / 2)));
      for (const Definition &d : kDefinitions) {
        if (d.f != Activation::sin && d.f != Activation::cos) continue;
        kernel.run(d.f, x.data(), y.data(), x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          expect_close(kernel, d, x[i], y[i], d.value(static_cast<long double>(x[i])), 0.51, 1);
      }
    }
  });
}

void test_exponential_units(void **) {
  each_kernel(kernels::activation_kernels(), [](const ActivationKernel &kernel) {
    Random random(5);
    std::vector<float> x = arguments(random, 20000), y(x.size());
    const Definition d{Activation::exp, "exponential unit", nullptr, nullptr, false};
    for (const auto &f : {kernels::ExponentialUnit{1, 1, 1}, {1.75, 1, 1.0625}, {0.5, 2, 1}, {-1, -1, 1}}) {
      kernel.exponential_unit(f, x.data(), y.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto wide = static_cast<long double>(x[i]);
        const long double want =
            x[i] < 0 ? f.below * std::expm1(f.rate * wide) : static_cast<long double>(f.above) * wide;
        expect_close(kernel, d, x[i], y[i], want, 2, 1);
      }
    }
  });
}

void test_swish(void **) {
  each_kernel(kernels::activation_kernels(), [](const ActivationKernel &kernel) {
    Random random(3);
    const std::vector<float> x = arguments(random, 20000);
    std::vector<float> y(x.size());
    const Definition d{Activation::sigmoid, "swish", nullptr, nullptr, false};
    for (const float alpha : {1.0f, 2.0f, -0.5f}) {
      kernel.swish({alpha}, x.data(), y.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto wide = static_cast<long double>(x[i]);
        expect_close(kernel, d, x[i], y[i], wide * sigmoid(static_cast<long double>(alpha) * wide), 2.2, 1);
      }
    }
  });
}

/// NaN, infinities, the smallest and the largest numbers of both signs.
std::vector<float> with_ends(std::vector<float> x, Random &random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kEnds[] = {kInfinity, -kInfinity, 3e38f, -3e38f, 1e-45f, -1e-40f, 0.0f, -0.0f, 89, -104, -87.5f};
  for (float &v : x)
    if (random.one_in(8)) v = kEnds[random.in<std::size_t>(0, std::size(kEnds) - 1)];
  return x;
}

void test_bits(void **) {
  const ActivationKernel &ref = kernels::activation_kernels().back();
  each_kernel(kernels::activation_kernels(), [&](const ActivationKernel &kernel) {
    Random random(2);
    for (std::size_t count = 0; count <= 200; ++count) {
      Guarded<float> x(with_ends(arguments(random, count), random)), dy(arguments(random, count)), y(count), dx(count);
      Guarded<double> wide(count), powers(count);
      std::vector<float> want(count);
      std::vector<double> wide_want(count);
      for (const Definition &d : kDefinitions) {
        ref.run(d.f, x.data(), want.data(), count);
        kernel.run(d.f, x.data(), y.data(), count);
        expect_result<float>(y, want, kernel.name, d.name);
        std::copy(x.span().begin(), x.span().end(), y.data());
        kernel.run(d.f, y.data(), y.data(), count);
        expect_result<float>(y, want, kernel.name, "in place");
        ref.backward(d.f, x.data(), dy.data(), want.data(), count);
        kernel.backward(d.f, x.data(), dy.data(), dx.data(), count);
        expect_result<float>(dx, want, kernel.name, d.name);
      }
      ref.swish({1.702f}, x.data(), want.data(), count);
      kernel.swish({1.702f}, x.data(), y.data(), count);
      expect_result<float>(y, want, kernel.name, "swish");
      constexpr kernels::ExponentialUnit kUnit{1.75, 0.5, 1.0625};
      ref.exponential_unit(kUnit, x.data(), want.data(), count);
      kernel.exponential_unit(kUnit, x.data(), y.data(), count);
      expect_result<float>(y, want, kernel.name, "exponential unit");
      const Guarded<float> slopes(arguments(random, std::max<std::size_t>(1, count)));
      for (const std::size_t step : {0, 1}) {
        for (std::size_t i = 0; i < count; ++i) want[i] = x[i] < 0 ? x[i] * slopes[i * step] : x[i];
        std::copy(x.span().begin(), x.span().end(), y.data());
        kernel.leaky(slopes.data(), step, y.data(), y.data(), count);
        expect_result<float>(y, want, kernel.name, "leaky");
      }
      for (std::size_t i = 0; i < count; ++i) wide[i] = std::fmin(5.0 * static_cast<double>(x[i]), 709.0);
      ref.exponentials(wide.data(), wide_want.data(), count);
      kernel.exponentials(wide.data(), powers.data(), count);
      expect_result<double>(powers, wide_want, kernel.name, "exponentials");
    }
  });
}

void test_ends(void **) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  each_kernel(kernels::activation_kernels(), [](const ActivationKernel &kernel) {
    for (const Definition &d : kDefinitions) {
      const float x[] = {kInfinity, std::numeric_limits<float>::quiet_NaN(), 3e38f, -3e38f, 1e-40f, 0.0f, -0.0f};
      float y[7];
      kernel.run(d.f, x, y, 7);
      const bool bounded = d.f == Activation::sigmoid || d.f == Activation::tanh || d.f == Activation::erf;
      if (d.f == Activation::sin || d.f == Activation::cos)
        assert_true(std::isnan(y[0]));
      else if (d.f == Activation::atan)
        assert_true(y[0] == static_cast<float>(M_PI_2));
      else
        assert_true(y[0] == (bounded ? 1 : kInfinity));
      assert_true(std::isnan(y[1]));
      if (d.f == Activation::log) {
        assert_true(std::isfinite(y[2]) && std::isnan(y[3]) && std::isfinite(y[4]));
        assert_true(y[5] == -kInfinity && y[6] == -kInfinity);
        continue;
      }
      for (int i = d.f == Activation::exp ? 3 : 2; i < 7; ++i) assert_true(std::isfinite(y[i]));
      if (d.f == Activation::sin || d.f == Activation::atan) assert_true(!std::signbit(y[5]) && std::signbit(y[6]));
    }
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_values),     cmocka_unit_test(test_swish),
                              cmocka_unit_test(test_bits),       cmocka_unit_test(test_ends),
                              cmocka_unit_test(test_far_angles), cmocka_unit_test(test_exponential_units)};
  return run_at_both_edges("activation", tests);
}
