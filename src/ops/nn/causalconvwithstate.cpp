// SPDX-License-Identifier: Apache-2.0
// CausalConvWithState of opset 27: each channel convolved with what came before, of which the end is kept. As that of
// ONNX Runtime, it also takes taps that lie `dilation` places apart.
#include <cmath>

#include "base/size.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/lane_tasks.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"activation", AttrSpec::kString}, {"dilation", AttrSpec::kInt}};
constexpr const char *kName = "CausalConvWithState";

bool has_activation(const Call &call) {
  const std::string name = call.attrs.get_string("activation", "none");
  if (name != "none" && name != "silu" && name != "swish")
    fail(QTN_EINVAL, kName, ": activation is \"", name, "\", not \"none\", \"silu\" or \"swish\"");
  return name != "none";
}

/// How many places the state holds.
std::int64_t places_before(const Call &call) {
  const std::int64_t dilation = call.attrs.get_int("dilation", 1);
  if (dilation < 1) fail(QTN_EINVAL, kName, ": dilation is ", dilation);
  return mul_dims(kName, call.in(1)->dim(2) - 1, dilation);
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &w = *call.in(1);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) require_float(kName, "each input", call.in(i));
  has_activation(call);
  if (x.rank() != 3) fail(QTN_ESHAPE, kName, ": input must have 3 axes, it is ", to_string(x.shape()));
  if (w.rank() != 3 || w.dim(0) != x.dim(1) || w.dim(1) != 1 || w.dim(2) < 1)
    fail(QTN_ESHAPE, kName, ": weight is ", to_string(w.shape()), ", not [", x.dim(1), ", 1, k] for input ",
         to_string(x.shape()));
  if (const Tensor *bias = call.in(2); bias && !(bias->shape() == Shape{x.dim(1)}))
    fail(QTN_ESHAPE, kName, ": bias is ", to_string(bias->shape()), " for ", x.dim(1), " channels");
  const Shape state{x.dim(0), x.dim(1), places_before(call)};
  if (call.in(3) && !(call.in(3)->shape() == state))
    fail(QTN_ESHAPE, kName, ": past_state is ", to_string(call.in(3)->shape()), ", not ", to_string(state));
  add_dims(kName, x.dim(2), state.back());
  Types types{{x.dtype(), x.shape()}, {x.dtype(), state}};
  types.resize(call.output_count);
  return types;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &w = *call.in(1);
  const std::int64_t channels = x.dim(1), length = x.dim(2), taps = w.dim(2), before = places_before(call),
                     dilation = call.attrs.get_int("dilation", 1);
  const float *past = call.in(3) ? call.in(3)->as<const float>() : nullptr,
              *bias = call.in(2) ? call.in(2)->as<const float>() : nullptr;
  float *y = outputs[0].has_data() ? outputs[0].as<float>() : nullptr;
  float *kept = outputs.size() > 1 && outputs[1].has_data() ? outputs[1].as<float>() : nullptr;
  const bool active = has_activation(call);
  std::vector<float> memory((Size(current_threads()) * (before + length)).value());
  for_tasks(x.dim(0) * channels, memory.data(), before + length, [&](std::int64_t row, float *line) {
    std::fill_n(line, before, 0.0f);
    if (past) std::copy_n(past + row * before, before, line);
    std::copy_n(x.as<const float>() + row * length, length, line + before);
    const float *tap = w.as<const float>() + row % channels * taps;
    for (std::int64_t t = 0; y && t < length; ++t) {
      float sum = bias ? bias[row % channels] : 0;
      for (std::int64_t k = 0; k < taps; ++k) sum += tap[k] * line[t + k * dilation];
      y[row * length + t] = active ? sum / (1 + std::exp(-sum)) : sum;
    }
    if (kept) std::copy_n(line + length, before, kept + row * before);
  });
}

/// A product for each tap.
double work(const Call &call) { return static_cast<double>(call.in(1)->dim(2)); }

}  // namespace

const OpDef kCausalConvWithState{.name = kName,
                                 .min_inputs = 2,
                                 .max_inputs = 4,
                                 .max_outputs = 2,
                                 .attrs = kAttrs,
                                 .infer = infer,
                                 .run = run,
                                 .work = work};

}  // namespace qtn::ops
