// SPDX-License-Identifier: Apache-2.0
// RMSNormalization as ONNX Runtime's tools write it, in ONNX's own domain.
#include "ops/common/epsilon.hpp"
#include "ops/common/rms.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"epsilon", AttrSpec::kFloat}, {"stash_type", AttrSpec::kInt}};
constexpr const char *kName = "SimplifiedLayerNormalization";

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", -1), call.in(0)->rank(), kName);
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  check_rms(kName, x, *call.in(1));
  Types types{{x.dtype(), x.shape()}};
  Shape kept = x.shape();
  std::fill(kept.begin() + axis_of(call), kept.end(), 1);
  if (call.output_count > 1) types.push_back({QTN_FLOAT32, kept});
  return types;
}

void run(const Call &call, std::span<Tensor> outputs) {
  float *inverses = outputs.size() > 1 && outputs[1].has_data() ? outputs[1].as<float>() : nullptr;
  rms_normalize(*call.in(0), *call.in(1), axis_of(call), call.attrs.get_float("epsilon", kDefaultEpsilon), outputs[0],
                inverses);
}

/// Inverse deviations are float32, whatever x is.
qdtype output_dtype(const Attrs &, std::size_t output, qdtype moved) { return output == 0 ? moved : QTN_FLOAT32; }

}  // namespace

const OpDef kSimplifiedLayerNormalization{.name = kName,
                                          .min_inputs = 2,
                                          .max_inputs = 2,
                                          .max_outputs = 2,
                                          .attrs = kAttrs,
                                          .infer = infer,
                                          .run = run,
                                          .offsets = {1, 1},
                                          .output_dtype = output_dtype};

}  // namespace qtn::ops
