// SPDX-License-Identifier: Apache-2.0
// Operators on floats that are only stored (float16, bfloat16, float8): computed in float32, rounded at the end.
#pragma once

#include <algorithm>
#include <optional>

#include "ops/common/infer.hpp"

namespace qtn::ops {

/// The inputs of a call with float32 in place of narrow floats.
class Widened {
 public:
  /// `values`: whether elements are needed, or types alone.
  Widened(const Call &call, bool values);

  bool changed() const { return !tensors_.empty(); }
  Call call() const;

 private:
  const Call &call_;
  std::vector<Tensor> tensors_;
  std::vector<const Tensor *> pointers_;
};

/// Rounds what a run gave into the outputs that it stands for.
void narrow_outputs(std::span<const Tensor> wide, std::span<Tensor> outputs);

/// The infer of an operator that is written for float32: outputs of that type have the type of input `like`.
template <auto infer, std::size_t like = 0>
Types infer_widened(const Call &call) {
  const Widened widened(call, false);
  if (!widened.changed()) return infer(call);
  Types types = infer(widened.call());
  for (TensorType &type : types)
    if (type.dtype == QTN_FLOAT32 && call.in(like)) type.dtype = call.in(like)->dtype();
  return types;
}

/// And its run.
template <auto run>
void run_widened(const Call &call, std::span<Tensor> outputs) {
  const Widened widened(call, true);
  if (!widened.changed()) return run(call, outputs);
  std::vector<Tensor> wide;
  for (const Tensor &y : outputs)
    wide.push_back(y.has_data() && is_narrow_float(y.dtype()) ? Tensor(QTN_FLOAT32, y.shape()) : y);
  run(widened.call(), wide);
  narrow_outputs(wide, outputs);
}

}  // namespace qtn::ops
