// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/clip.hpp"

#include <cmath>

#include "kernels/real/real.hpp"
#include "train/blocks.hpp"

namespace qtn::train {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 14;

/// Lanes, so that the sum is one of vectors whatever the instruction set.
double sum_of_squares(const float *x, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto v = static_cast<double>(x[i + lane]);
      lanes[lane] += v * v;
    }
  for (; i < count; ++i) lanes[i % kLanes] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

/// body(elements, count) for pieces of all gradients.
template <class Body>
void for_gradients(std::span<const Parameter> parameters, const Body &body) {
  for (const Parameter &p : parameters) {
    auto *x = p.gradient.as<float>();
    const auto count = static_cast<std::size_t>(p.gradient.count());
    parallel_for(ceil_div(count, kBlock),
                 [&](std::size_t block) { body(x + block * kBlock, std::min(kBlock, count - block * kBlock)); });
  }
}

}  // namespace

double gradient_norm(std::span<const Parameter> parameters) {
  double sum = 0;
  for (const Parameter &p : parameters)
    sum += sum_blocks(static_cast<std::size_t>(p.gradient.count()), kBlock, [&](std::size_t begin, std::size_t end) {
      return sum_of_squares(p.gradient.as<const float>() + begin, end - begin);
    });
  return std::sqrt(sum);
}

void clip_norm(std::span<const Parameter> parameters, double bound) {
  const double factor = bound / (gradient_norm(parameters) + 1e-6);
  if (factor >= 1) return;
  for_gradients(parameters, [by = static_cast<float>(factor)](float *x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) x[i] *= by;
  });
}

void clip_value(std::span<const Parameter> parameters, double bound) {
  const auto &kernel = kernels::real_kernel();
  const auto high = static_cast<float>(bound);
  for_gradients(parameters, [&](float *x, std::size_t count) { kernel.clamp(x, count, -high, high); });
}

}  // namespace qtn::train
