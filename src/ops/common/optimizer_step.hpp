// SPDX-License-Identifier: Apache-2.0
// What the optimizers of ai.onnx.preview.training share: inputs are a rate, a count of steps, and then for all
// parameters their values, their gradients and one or two states; outputs are new values and new states.
#pragma once

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {

inline constexpr const char *kTrainingDomain = "ai.onnx.preview.training";

/// `kinds`: of inputs for each parameter: its value, its gradient, and its states.
inline std::size_t parameter_count(const char *op, const Call &call, std::size_t kinds) {
  const std::size_t given = call.inputs.size() - 2;
  if (given == 0 || given % kinds != 0)
    fail(QTN_EINVAL, op, ": ", given, " inputs after the first two are no ", kinds, " for each parameter");
  return given / kinds;
}

inline Types infer_optimizer_step(const char *op, const Call &call, std::size_t kinds) {
  const std::size_t count = parameter_count(op, call, kinds);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (!call.in(i)) fail(QTN_EINVAL, op, ": input ", i, " is missing");
  require_real(op, "R", call.in(0));
  require_dtype(op, "T", *call.in(1), {QTN_INT64});
  for (const std::size_t i : {0, 1})
    if (call.in(i)->count() != 1 || call.in(i)->rank() > 1)
      fail(QTN_ESHAPE, op, ": ", i == 0 ? "R" : "T", " is ", to_string(call.in(i)->shape()), ", not one number");
  Types types;
  for (std::size_t i = 0; i < count * kinds; ++i) {
    const Tensor &t = *call.in(2 + i), &value = *call.in(2 + i % count);
    require_real(op, "a parameter", &t);
    if (t.dtype() != value.dtype() || !(t.shape() == value.shape()))
      fail(QTN_ESHAPE, op, ": input ", 2 + i, " is ", dtype_name(t.dtype()), " ", to_string(t.shape()),
           ", its parameter ", dtype_name(value.dtype()), " ", to_string(value.shape()));
    if (i < count || i >= 2 * count) types.push_back({t.dtype(), t.shape()});
  }
  types.resize(std::min(call.output_count, types.size()));
  return types;
}

inline double rate_of(const Call &call) { return item(*call.in(0)); }
inline double step_of(const Call &call) { return item(*call.in(1)); }

/// Calls f(number, parameter[kinds]) for every element, which may change the value and the states.
template <std::size_t kKinds, class F>
void run_optimizer_step(const char *op, const Call &call, std::span<Tensor> outputs, F &&f) {
  const std::size_t count = parameter_count(op, call, kKinds);
  for (std::size_t p = 0; p < count; ++p)
    dispatch_number(call.in(2 + p)->dtype(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_floating_point_v<T>) {
        std::array<const T *, kKinds> from;
        for (std::size_t k = 0; k < kKinds; ++k) from[k] = call.in(2 + k * count + p)->template as<const T>();
        for_blocks(call.in(2 + p)->count(), [&](std::int64_t begin, std::int64_t end) {
          std::array<T, kKinds> x;
          for (std::int64_t i = begin; i < end; ++i) {
            for (std::size_t k = 0; k < kKinds; ++k) x[k] = from[k][i];
            f(x);
            for (std::size_t k = 0; k < kKinds; ++k) {
              const std::size_t o = (k == 0 ? 0 : k - 1) * count + p;
              if (k != 1 && o < outputs.size() && outputs[o].has_data()) outputs[o].template as<T>()[i] = x[k];
            }
          }
        });
      }
    });
}

}  // namespace qtn::ops
