// SPDX-License-Identifier: Apache-2.0
#include "ops/common/rms.hpp"
#include "ops/common/skip.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "SkipSimplifiedLayerNormalization";

Types infer(const Call &call) { return infer_skip(kName, call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const Tensor sum = x.dtype() == QTN_FLOAT64 ? skip_sum<double>(call, 3, outputs) : skip_sum<float>(call, 3, outputs);
  rms_normalize(sum, *call.in(2), x.rank() - 1, call.attrs.get_float("epsilon", 1e-12), y, statistic(outputs, 2));
  if (float *means = statistic(outputs, 1)) std::fill_n(means, outputs[1].count(), 0.0f);
}

}  // namespace

const OpDef kSkipSimplifiedLayerNormalization{.name = kName,
                                              .domain = kMicrosoft,
                                              .min_inputs = 3,
                                              .max_inputs = 4,
                                              .max_outputs = 4,
                                              .attrs = kSkipAttrs,
                                              .infer = infer,
                                              .run = run,
                                              .offsets = {2, 2},
                                              .output_dtype = skip_dtype};

}  // namespace qtn::ops
