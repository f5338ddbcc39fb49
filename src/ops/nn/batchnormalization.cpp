// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/epsilon.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"epsilon", AttrSpec::kFloat}, {"momentum", AttrSpec::kFloat}, {"training_mode", AttrSpec::kInt}};
constexpr const char *kNames[] = {"x", "scale", "B", "input_mean", "input_var"};

std::int64_t channels_of(const Shape &x) { return x.size() < 2 ? 1 : x[1]; }

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  for (std::size_t i = 0; i < 5; ++i) {
    const Tensor &t = *call.in(i);
    require_float("BatchNormalization", kNames[i], &t);
    if (i > 0 && !(t.shape() == Shape{channels_of(x.shape())}))
      fail(QTN_ESHAPE, "BatchNormalization: ", kNames[i], " is ", to_string(t.shape()), ", x ", to_string(x.shape()),
           " has ", channels_of(x.shape()), " channels");
  }
  Types types(call.output_count, {x.dtype(), call.in(3)->shape()});  // statistics, in training mode
  types[0] = {x.dtype(), x.shape()};
  return types;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  if (call.attrs.get_int("training_mode", 0) != 0 || call.output_count > 1)
    fail(QTN_EUNSUPPORTED, "BatchNormalization: training_mode is for trainers");
  if (x.count() == 0) return;
  const std::int64_t channels = channels_of(x.shape()), planes = x.rank() < 2 ? 1 : x.dim(0) * channels;
  const std::int64_t size = x.count() / planes;
  const double epsilon = call.attrs.get_float("epsilon", kDefaultEpsilon);
  parallel_for(static_cast<std::size_t>(planes), [&](std::size_t plane) {
    const auto c = static_cast<std::int64_t>(plane) % channels;
    const auto at = [&](std::size_t i) { return static_cast<double>(call.in(i)->as<const float>()[c]); };
    const double factor = at(1) / std::sqrt(at(4) + epsilon);
    const auto gain = static_cast<float>(factor);
    const float mean = call.in(3)->as<const float>()[c], shift = call.in(2)->as<const float>()[c];
    const float *from = x.as<const float>() + static_cast<std::int64_t>(plane) * size;
    float *to = outputs[0].as<float>() + static_cast<std::int64_t>(plane) * size;
    for (std::int64_t i = 0; i < size; ++i) to[i] = (from[i] - mean) * gain + shift;
  });
}

void upgrade(OldNode &node) {
  if (node.opset >= 9) return;
  if (node.attrs.get_int("spatial", 1) == 0) fail(QTN_EUNSUPPORTED, "BatchNormalization: spatial 0 is not supported");
  for (const char *gone : {"spatial", "consumed_inputs", "is_test"}) node.attrs.erase(gone);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &x = *run.call.in(0), &dy = run.dy[0];
  for (const std::size_t i : {3, 4}) refuse_gradient("BatchNormalization", kNames[i], dx[i]);
  const Shape shape = channel_shape(x);
  const std::int64_t channels = channels_of(x.shape());
  const auto inverse = [&, epsilon = run.call.attrs.get_float("epsilon", kDefaultEpsilon)](std::int64_t c) {
    return 1 / std::sqrt(static_cast<double>(run.call.in(4)->as<const float>()[c]) + epsilon);
  };
  if (dx[0].has_data()) {
    const Tensor gain = scratch_tensor(run.scratch, shape);
    for (std::int64_t c = 0; c < channels; ++c)
      gain.as<float>()[c] = static_cast<float>(static_cast<double>(run.call.in(1)->as<const float>()[c]) * inverse(c));
    broadcast_gradient(
        dx[0], dy, [](float slope, float g) { return slope * g; }, gain);
  }
  if (dx[1].has_data()) {
    broadcast_gradient(
        dx[1].reshaped(shape), dy, [](float slope, float v, float m) { return slope * (v - m); }, x,
        run.call.in(3)->reshaped(shape));
    for (std::int64_t c = 0; c < channels; ++c)
      dx[1].as<float>()[c] = static_cast<float>(static_cast<double>(dx[1].as<float>()[c]) * inverse(c));
  }
  channel_gradient(dx[2], dy);
}

}  // namespace

const OpDef kBatchNormalization{.name = "BatchNormalization",
                                .min_inputs = 5,
                                .max_inputs = 5,
                                .max_outputs = 5,
                                .attrs = kAttrs,
                                .infer = infer,
                                .run = run,
                                .backward = backward,
                                .keeps = {.inputs = kAllInputs},
                                .offsets = {1, 2},
                                .statistics = {3, 2},
                                .upgrade = upgrade};

}  // namespace qtn::ops
