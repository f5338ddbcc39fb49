// SPDX-License-Identifier: Apache-2.0
#include "ops/common/epsilon.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/rms.hpp"
#include "ops/common/standardize.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"epsilon", AttrSpec::kFloat}, {"stash_type", AttrSpec::kInt}};
constexpr const char *kName = "RMSNormalization";

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", -1), call.in(0)->rank(), kName);
}

Types infer(const Call &call) {
  check_rms(kName, *call.in(0), *call.in(1));
  axis_of(call);
  return {{call.in(1)->dtype(), call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  rms_normalize(*call.in(0), *call.in(1), axis_of(call), call.attrs.get_float("epsilon", kDefaultEpsilon), outputs[0],
                nullptr);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &x = *run.call.in(0), &dy = run.dy[0];
  const auto product = [](float slope, float factor) { return slope * factor; };
  broadcast_gradient(dx[0], dy, product, *run.call.in(1));
  const std::int64_t length = element_count(x.shape(), axis_of(run.call), x.rank());
  const std::int64_t rows = length == 0 ? 0 : x.count() / length;
  const Tensor memory = scratch_tensor(run.scratch, {x.count() + rows});
  if (rows > 0)
    standardize(x, length, run.call.attrs.get_float("epsilon", kDefaultEpsilon), Centre::zero, memory.as<float>());
  broadcast_gradient(dx[1], dy, product, memory.view(x.shape(), contiguous_strides(x.shape())));
  if (dx[0].has_data()) standardize_back(memory.as<const float>(), rows, length, Centre::zero, dx[0].as<float>());
}

}  // namespace

const OpDef kRMSNormalization{.name = kName,
                              .min_inputs = 2,
                              .max_inputs = 2,
                              .max_outputs = 1,
                              .attrs = kAttrs,
                              .infer = infer,
                              .run = run,
                              .moved = {1, 1},
                              .backward = backward,
                              .keeps = {.inputs = {0, 2}},
                              .offsets = {1, 1}};

}  // namespace qtn::ops
