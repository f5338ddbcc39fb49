// SPDX-License-Identifier: Apache-2.0
// What the operators share that fill a tensor with random numbers: of a shape that an attribute says, or like input 0.
#pragma once

#include "ops/common/generator.hpp"

namespace qtn::ops {

inline Types infer_random(const char *op, const Call &call) {
  const Tensor *like = call.in(0);
  const qdtype dtype = dtype_attribute(op, call.attrs, "dtype", like ? like->dtype() : QTN_FLOAT32);
  if (!is_floating(dtype)) fail(QTN_EDTYPE, op, ": dtype is ", dtype_name(dtype), ", which is no float");
  if (like) return {{dtype, like->shape()}};
  if (!call.attrs.has("shape")) fail(QTN_EINVAL, op, ": attribute \"shape\" is missing");
  return {{dtype, Shape(call.attrs.get_ints("shape"))}};
}

/// Nanoseconds of a number, as measured on Emerald Rapids.
inline double work_of_normal(const Call &) { return 70; }
inline double work_of_uniform(const Call &) { return 15; }

inline void run_normal(const Call &call, std::span<Tensor> outputs) {
  const double mean = call.attrs.get_float("mean", 0), scale = call.attrs.get_float("scale", 1);
  generate(outputs[0], [=, draws = Draws(call.attrs)](std::int64_t i) { return mean + scale * draws.normal(i); });
}

inline void run_uniform(const Call &call, std::span<Tensor> outputs) {
  const double low = call.attrs.get_float("low", 0), high = call.attrs.get_float("high", 1);
  generate(outputs[0],
           [=, draws = Draws(call.attrs)](std::int64_t i) { return low + (high - low) * draws.uniform(i); });
}

}  // namespace qtn::ops
