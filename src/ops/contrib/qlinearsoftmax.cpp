// SPDX-License-Identifier: Apache-2.0
#include "ops/common/qlinear.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "QLinearSoftmax";
constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"opset", AttrSpec::kInt}};

/// "opset" is that of the Softmax which the node was: before 13 it ran over all axes from `axis` on as one.
Attrs softmax_attrs(const Call &call) {
  Attrs attrs = call.attrs;
  attrs.erase("opset");
  if (call.attrs.get_int("opset", 13) < 13) attrs.set("_flatten", std::int64_t{1});
  return attrs;
}

Types infer(const Call &call) { return infer_qlinear_unary(kName, kSoftmax, softmax_attrs(call), call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_qlinear_unary(kName, kSoftmax, softmax_attrs(call), call, outputs[0]);
}

}  // namespace

const OpDef kQLinearSoftmax{.name = kName,
                            .domain = kMicrosoft,
                            .min_inputs = 2,
                            .max_inputs = 5,
                            .max_outputs = 1,
                            .attrs = kAttrs,
                            .infer = infer,
                            .run = run};

}  // namespace qtn::ops
