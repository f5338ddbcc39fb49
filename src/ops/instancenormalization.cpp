// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/infer.hpp"
#include "ops/moments.hpp"

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
  const double epsilon = call.attrs.get_float("epsilon", 1e-5);
  parallel_for(static_cast<std::size_t>(x.dim(0) * channels), [&](std::size_t plane) {
    const auto c = static_cast<std::int64_t>(plane) % channels, at = static_cast<std::int64_t>(plane) * size;
    const T *from = x.as<const T>() + at;
    T *to = y.as<T>() + at;
    const Moments m = moments(from, size);
    const double gain = static_cast<double>(call.in(1)->as<const T>()[c]) / std::sqrt(m.variance + epsilon);
    const auto shift = static_cast<double>(call.in(2)->as<const T>()[c]);
    for (std::int64_t i = 0; i < size; ++i)
      to[i] = static_cast<T>((static_cast<double>(from[i]) - m.mean) * gain + shift);
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? normalize<double>(call, outputs[0]) : normalize<float>(call, outputs[0]);
}

}  // namespace

const OpDef kInstanceNormalization{.name = "InstanceNormalization",
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .max_outputs = 1,
                                   .attrs = kAttrs,
                                   .infer = infer,
                                   .run = run};

}  // namespace qtn::ops
