// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"detect_negative", AttrSpec::kInt}, {"detect_positive", AttrSpec::kInt}};

Types infer(const Call &call) {
  require_real("IsInf", "x", call.in(0));
  return {{QTN_BOOL, call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const bool negative = call.attrs.get_int("detect_negative", 1) != 0,
             positive = call.attrs.get_int("detect_positive", 1) != 0;
  const auto test = [=](auto x) { return std::isinf(x) && (x > 0 ? positive : negative); };
  const Tensor &x = *call.in(0);
  x.dtype() == QTN_FLOAT64 ? map_elements<double, bool>(x, outputs[0], test)
                           : map_elements<float, bool>(x, outputs[0], test);
}

}  // namespace

const OpDef kIsInf{.name = "IsInf",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .max_outputs = 1,
                   .attrs = kAttrs,
                   .infer = infer,
                   .run = run,
                   .output_dtype = makes<QTN_BOOL>};

}  // namespace qtn::ops
