// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/epsilon.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/moments.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"epsilon", AttrSpec::kFloat}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("InstanceNormalization", "x", &x);
  if (x.rank() < 3) fail(QTN_ESHAPE, "InstanceNormalization: x ", to_string(x.shape()), " has no spatial axes");
  constexpr const char *kNames[] = {"x", "scale", "B"};
  for (const std::size_t i : {1, 2}) {
    require_same_dtype("InstanceNormalization", x, *call.in(i));
    if (!(call.in(i)->shape() == Shape{x.dim(1)}))
      fail(QTN_ESHAPE, "InstanceNormalization: ", kNames[i], " is ", to_string(call.in(i)->shape()), ", x ",
           to_string(x.shape()), " has ", x.dim(1), " channels");
  }
  return {{x.dtype(), x.shape()}};
}

template <class T>
void normalize(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  const std::int64_t channels = x.dim(1), size = element_count(x.shape(), 2, x.rank());
  const double epsilon = call.attrs.get_float("epsilon", kDefaultEpsilon);
  parallel_for(static_cast<std::size_t>(x.dim(0) * channels), [&](std::size_t plane) {
    const auto c = static_cast<std::int64_t>(plane) % channels, at = static_cast<std::int64_t>(plane) * size;
    const T *from = x.as<const T>() + at;
    T *to = y.as<T>() + at;
    const Moments m = moments(from, size);
    const double gain = static_cast<double>(call.in(1)->as<const T>()[c]) / std::sqrt(m.variance + epsilon);
    const auto shift = static_cast<double>(call.in(2)->as<const T>()[c]);
    shift_by(from, size, m.mean, gain, shift, to);
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? normalize<double>(call, outputs[0]) : normalize<float>(call, outputs[0]);
}

/// Sums over a plane: of dy, and of dy times what x is standardized to.
struct PlaneSums {
  double dy, dy_v;
};

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &x = *run.call.in(0), &dy = run.dy[0];
  const std::int64_t channels = x.dim(1), size = element_count(x.shape(), 2, x.rank()), planes = x.dim(0) * channels;
  const double epsilon = run.call.attrs.get_float("epsilon", kDefaultEpsilon);
  auto *sums = reinterpret_cast<PlaneSums *>(run.scratch.take(static_cast<std::size_t>(planes) * sizeof(PlaneSums)));
  const float *scale = run.call.in(1)->as<const float>();
  parallel_for(static_cast<std::size_t>(planes), [&](std::size_t plane) {
    const std::int64_t at = static_cast<std::int64_t>(plane) * size;
    const float *from = x.as<const float>() + at, *slope = dy.as<const float>() + at;
    const Moments m = moments(from, size);
    const double rstd = 1 / std::sqrt(m.variance + epsilon);
    const auto v = [&](std::int64_t i) { return (static_cast<double>(from[i]) - m.mean) * rstd; };
    const double dy_sum = sum_of(size, [&](std::int64_t i) { return slope[i]; });
    const double dy_v = sum_of(size, [&](std::int64_t i) { return static_cast<double>(slope[i]) * v(i); });
    sums[plane] = {dy_sum, dy_v};
    if (!dx[0].has_data()) return;
    const double gain = static_cast<double>(scale[static_cast<std::int64_t>(plane) % channels]) * rstd;
    const double mean = dy_sum / static_cast<double>(size), along = dy_v / static_cast<double>(size);
    float *to = dx[0].as<float>() + at;
    for (std::int64_t i = 0; i < size; ++i)
      to[i] = static_cast<float>(gain * (static_cast<double>(slope[i]) - mean - along * v(i)));
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    double dy_sum = 0, dy_v = 0;
    for (std::int64_t plane = c; plane < planes; plane += channels) {
      dy_sum += sums[plane].dy;
      dy_v += sums[plane].dy_v;
    }
    if (dx[1].has_data()) dx[1].as<float>()[c] = static_cast<float>(dy_v);
    if (dx[2].has_data()) dx[2].as<float>()[c] = static_cast<float>(dy_sum);
  }
}

}  // namespace

const OpDef kInstanceNormalization{.name = "InstanceNormalization",
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .max_outputs = 1,
                                   .attrs = kAttrs,
                                   .infer = infer,
                                   .run = run,
                                   .backward = backward,
                                   .keeps = {.inputs = {0, 2}},
                                   .offsets = {1, 2}};

}  // namespace qtn::ops
