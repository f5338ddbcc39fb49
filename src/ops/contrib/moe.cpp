// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/counted.hpp"
#include "ops/common/experts.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"activation_alpha", AttrSpec::kFloat},
                               {"activation_beta", AttrSpec::kFloat},
                               {"activation_type", AttrSpec::kString},
                               {"k", AttrSpec::kInt},
                               {"normalize_routing_weights", AttrSpec::kInt},
                               {"swiglu_fusion", AttrSpec::kInt},
                               {"swiglu_limit", AttrSpec::kFloat},
                               {"use_sparse_mixer", AttrSpec::kInt}};
constexpr const char *kName = "MoE";

// Inputs x, router_probs, then weights and bias of each layer.
constexpr ExpertInputs kInputs{.weights = 2, .bias = 3, .step = 2};

ExpertForm form_of(const Call &call) { return {kName, call, kInputs, {1, 1, 1}}; }

Types infer(const Call &call) {
  form_of(call);
  for (const std::size_t layer : {0, 1, 2})
    if (const Tensor *weights = kInputs.weights_of(call, layer))
      require_float(kName, of_layer(layer, "experts_weights").c_str(), weights);
  return {{QTN_FLOAT32, call.in(0)->shape()}};
}

/// The softmax of each row. Equal shares of different numbers choose as equal numbers do.
CountedVector<float> shares_of(const Tensor &router, std::int64_t experts) {
  CountedVector<float> shares(static_cast<std::size_t>(router.count()));
  const float *numbers = router.as<const float>();
  for (std::size_t row = 0; row < shares.size(); row += static_cast<std::size_t>(experts)) {
    const float *from = numbers + row, top = *std::max_element(from, from + experts);
    float sum = 0;
    for (std::int64_t e = 0; e < experts; ++e) sum += shares[row + e] = std::exp(from[e] - top);
    for (std::int64_t e = 0; e < experts; ++e) shares[row + e] /= sum;
  }
  return shares;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const ExpertForm form = form_of(call);
  std::array<ExpertLayer, 3> layers{};
  for (const std::size_t i : {0, 1, 2})
    if (const Tensor *weights = kInputs.weights_of(call, i))
      layers[i] = {form.outputs(i), form.inputs(i), kInputs.bias_of(call, i), 0,
                   [from = weights->as<const float>(), m = form.outputs(i), n = form.inputs(i)](
                       std::int64_t expert, std::int64_t first, std::int64_t, float *) {
                     return from + (expert * m + first) * n;
                   }};
  const CountedVector<float> shares = shares_of(*call.in(1), form.experts);
  const Routing routing{shares.data(), shares.data(), call.attrs.get_int("normalize_routing_weights", 0) != 0};
  run_experts(form, routing, *call.in(0), layers, outputs[0]);
}

double work(const Call &call) { return work_of_experts(call, *call.in(2), *call.in(4)); }

}  // namespace

const OpDef kMoE{.name = kName,
                 .domain = kMicrosoft,
                 .min_inputs = 3,
                 .max_inputs = 8,
                 .max_outputs = 1,
                 .attrs = kAttrs,
                 .infer = infer,
                 .run = run,
                 .work = work};

}  // namespace qtn::ops
