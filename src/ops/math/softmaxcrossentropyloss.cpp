// SPDX-License-Identifier: Apache-2.0
#include "ops/common/log_likelihood.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kOp = "SoftmaxCrossEntropyLoss";

Types infer(const Call &call) {
  Types types = infer_log_likelihood(kOp, call);
  if (call.output_count > 1) types.push_back({call.in(0)->dtype(), call.in(0)->shape()});
  return types;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  const bool wanted = outputs.size() > 1 && outputs[1].has_data();
  const Tensor logarithms = wanted ? outputs[1] : Tensor(x.dtype(), x.shape());
  Attrs axis;
  axis.set("axis", std::int64_t{1});
  const Tensor *inputs[] = {&x};
  std::array<Tensor, 1> result{logarithms};
  if (x.count() > 0) kLogSoftmax.run(Call{axis, inputs}, result);
  log_likelihood(kOp, call, logarithms, outputs[0]);
}

}  // namespace

const OpDef kSoftmaxCrossEntropyLoss{.name = "SoftmaxCrossEntropyLoss",
                                     .min_inputs = 2,
                                     .max_inputs = 3,
                                     .max_outputs = 2,
                                     .attrs = kLossAttrs,
                                     .infer = infer,
                                     .run = run};

}  // namespace qtn::ops
