// SPDX-License-Identifier: Apache-2.0
#include "ops/common/softmax.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_softmax("Hardmax", call); }

template <class T>
void mark_largest(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  for_softmax_rows("Hardmax", call, [&](std::int64_t at, std::int64_t length, std::int64_t step) {
    const T *from = x.as<const T>() + at;
    T *to = y.as<T>() + at;
    std::int64_t top = 0;
    for (std::int64_t k = 0; k < length; ++k) {
      to[k * step] = 0;
      const T v = from[k * step], best = from[top * step];
      if (v > best || (std::isnan(v) && !std::isnan(best))) top = k;
    }
    to[top * step] = 1;
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  outputs[0].dtype() == QTN_FLOAT64 ? mark_largest<double>(call, outputs[0]) : mark_largest<float>(call, outputs[0]);
}

}  // namespace

const OpDef kHardmax{.name = "Hardmax",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = kSoftmaxAttrs,
                     .infer = infer,
                     .run = run,
                     .bounds = Clamp{0, 1},
                     .upgrade = upgrade_softmax};

}  // namespace qtn::ops
