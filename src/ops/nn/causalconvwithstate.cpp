// SPDX-License-Identifier: Apache-2.0
// CausalConvWithState of opset 27: each channel convolved with what came before, of which the end is kept. As that of
// ONNX Runtime, it also takes taps that lie `dilation` places apart.
#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/infer.hpp"

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

/// The elements of a channel by their place; those of the state, if there is one, are at places below 0.
struct Line {
  const float *x, *past;
  std::int64_t length, before;

  /// Those from `place` on, so many of them: visit(which of them, element).
  template <class Visit>
  void read(std::int64_t place, std::int64_t count, const Visit &visit) const {
    const std::int64_t old = std::clamp<std::int64_t>(-place, 0, count);
    for (std::int64_t i = 0; i < old; ++i) visit(i, past ? past[before + place + i] : 0.0f);
    for (std::int64_t i = old; i < count; ++i) visit(i, x[place + i]);
  }
};

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &w = *call.in(1);
  const std::int64_t channels = x.dim(1), length = x.dim(2), taps = w.dim(2), before = places_before(call),
                     dilation = call.attrs.get_int("dilation", 1);
  const float *past = call.in(3) ? call.in(3)->as<const float>() : nullptr,
              *bias = call.in(2) ? call.in(2)->as<const float>() : nullptr;
  float *all = outputs[0].has_data() ? outputs[0].as<float>() : nullptr;
  float *kept = outputs.size() > 1 && outputs[1].has_data() ? outputs[1].as<float>() : nullptr;
  const bool active = has_activation(call);
  parallel_for(static_cast<std::size_t>(x.dim(0) * channels), [&](std::size_t task) {
    const auto row = static_cast<std::int64_t>(task);
    const Line line{x.as<const float>() + row * length, past ? past + row * before : nullptr, length, before};
    if (kept) line.read(length - before, before, [&, to = kept + row * before](auto i, float v) { to[i] = v; });
    if (!all) return;
    float *y = all + row * length;
    std::fill_n(y, length, bias ? bias[row % channels] : 0.0f);
    for (std::int64_t k = 0; k < taps; ++k)
      line.read(k * dilation - before, length,
                [y, tap = w.as<const float>()[row % channels * taps + k]](auto i, float v) { y[i] += tap * v; });
    for (std::int64_t t = 0; active && t < length; ++t) y[t] = y[t] / (1 + std::exp(-y[t]));
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
