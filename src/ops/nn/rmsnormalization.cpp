// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradient.hpp"
#include "ops/common/rms.hpp"

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
  rms_normalize(*call.in(0), *call.in(1), axis_of(call), call.attrs.get_float("epsilon", 1e-5), outputs[0], nullptr);
}

/// Rows of x by the inverse of their root mean square, and behind them these inverses.
void standardize(const Tensor &x, std::int64_t length, double epsilon, float *standard) {
  float *inverses = standard + x.count();
  parallel_for(static_cast<std::size_t>(x.count() / length), [&](std::size_t row) {
    const float *from = x.as<const float>() + static_cast<std::int64_t>(row) * length;
    const double squares =
        sum_of(length, [from](std::int64_t i) { return static_cast<double>(from[i]) * static_cast<double>(from[i]); });
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(length) + epsilon);
    float *to = standard + static_cast<std::int64_t>(row) * length;
    for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<float>(static_cast<double>(from[i]) * inverse);
    inverses[row] = static_cast<float>(inverse);
  });
}

/// The gradient of x, from that of the standardized rows, which is in its place.
void standardize_back(const float *standard, std::int64_t rows, std::int64_t length, float *dx) {
  const float *inverses = standard + rows * length;
  parallel_for(static_cast<std::size_t>(rows), [&](std::size_t row) {
    const float *v = standard + static_cast<std::int64_t>(row) * length;
    float *to = dx + static_cast<std::int64_t>(row) * length;
    const double product = sum_of(length, [to, v](std::int64_t i) { return to[i] * v[i]; });
    const auto along = static_cast<float>(product / static_cast<double>(length));
    for (std::int64_t i = 0; i < length; ++i) to[i] = inverses[row] * (to[i] - along * v[i]);
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &x = *run.call.in(0), &dy = run.dy[0];
  const auto product = [](float slope, float factor) { return slope * factor; };
  broadcast_gradient(dx[0], dy, product, *run.call.in(1));
  const std::int64_t length = element_count(x.shape(), axis_of(run.call), x.rank());
  const std::int64_t rows = length == 0 ? 0 : x.count() / length;
  const Tensor memory = scratch_tensor(run.scratch, {x.count() + rows});
  if (rows > 0) standardize(x, length, run.call.attrs.get_float("epsilon", 1e-5), memory.as<float>());
  broadcast_gradient(dx[1], dy, product, memory.view(x.shape(), contiguous_strides(x.shape())));
  if (dx[0].has_data()) standardize_back(memory.as<const float>(), rows, length, dx[0].as<float>());
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
