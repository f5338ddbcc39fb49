// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/epsilon.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/moments.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"epsilon", AttrSpec::kFloat}, {"num_groups", AttrSpec::kInt}, {"stash_type", AttrSpec::kInt}};
constexpr const char *kName = "GroupNormalization";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real(kName, "x", &x);
  if (x.rank() < 3) fail(QTN_ESHAPE, kName, ": x ", to_string(x.shape()), " has no spatial axes");
  const std::int64_t groups = call.attrs.get_int("num_groups", 0);
  if (groups < 1 || x.dim(1) % groups != 0)
    fail(QTN_EINVAL, kName, ": num_groups is ", groups, ", x ", to_string(x.shape()), " has ", x.dim(1), " channels");
  constexpr const char *kNames[] = {"x", "scale", "bias"};
  for (const std::size_t i : {1, 2}) {
    require_same_dtype(kName, x, *call.in(i));
    // Opset 18 had one of each for a group.
    if (!(call.in(i)->shape() == Shape{x.dim(1)}) && !(call.in(i)->shape() == Shape{groups}))
      fail(QTN_ESHAPE, kName, ": ", kNames[i], " is ", to_string(call.in(i)->shape()), ", x ", to_string(x.shape()),
           " has ", x.dim(1), " channels in ", groups, " groups");
  }
  return {{x.dtype(), x.shape()}};
}

template <class T>
void normalize(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0), &scale = *call.in(1), &bias = *call.in(2);
  const std::int64_t channels = x.dim(1), groups = call.attrs.get_int("num_groups", 1), size = channels / groups,
                     plane = element_count(x.shape(), 2, x.rank());
  const double epsilon = call.attrs.get_float("epsilon", kDefaultEpsilon);
  const auto of = [&](const Tensor &t, std::int64_t c) {
    return static_cast<double>(t.as<const T>()[t.dim(0) == channels ? c : c / size]);
  };
  parallel_for(static_cast<std::size_t>(x.dim(0) * groups), [&](std::size_t index) {
    const std::int64_t first = static_cast<std::int64_t>(index) % groups * size;
    const std::int64_t at = static_cast<std::int64_t>(index) * size * plane;
    const T *from = x.as<const T>() + at;
    T *to = y.as<T>() + at;
    const Moments m = moments(from, size * plane);
    const double inverse = 1 / std::sqrt(m.variance + epsilon);
    for (std::int64_t c = first; c < first + size; ++c) {
      shift_by(from, plane, m.mean, of(scale, c) * inverse, of(bias, c), to);
      from += plane;
      to += plane;
    }
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? normalize<double>(call, outputs[0]) : normalize<float>(call, outputs[0]);
}

}  // namespace

const OpDef kGroupNormalization{.name = kName,
                                .min_inputs = 3,
                                .max_inputs = 3,
                                .max_outputs = 1,
                                .attrs = kAttrs,
                                .infer = infer,
                                .run = run,
                                .offsets = {1, 2}};

}  // namespace qtn::ops
