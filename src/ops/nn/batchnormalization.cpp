// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "base/parallel.hpp"
#include "ops/common/channel_line.hpp"
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

/// x as [batches, channels, size].
struct Planes {
  explicit Planes(const Tensor &x)
      : data(x.as<const float>()),
        channels(channels_of(x.shape())),
        batches(x.rank() < 2 ? 1 : x.dim(0)),
        size(x.count() / (batches * channels)) {}

  const float *data;
  std::int64_t channels, batches, size;
};

/// Mean and variance of the elements of one channel, divided by their number.
struct Statistics {
  double mean, variance;
};

Statistics statistics_of(const Planes &x, std::int64_t channel) {
  const auto mean_of = [&](auto term) {
    double sum = 0;
    for (std::int64_t b = 0; b < x.batches; ++b) {
      const float *plane = x.data + (b * x.channels + channel) * x.size;
      sum = std::accumulate(plane, plane + x.size, sum, [&](double so_far, float v) { return so_far + term(v); });
    }
    return sum / static_cast<double>(x.batches * x.size);
  };
  const double mean = mean_of([](double v) { return v; });
  return {mean, mean_of([&](double v) { return (v - mean) * (v - mean); })};
}

/// Outputs 1 and 2 are the statistics given, moved towards those of x.
void move_statistics(const Call &call, std::span<Tensor> outputs, std::int64_t c, const Statistics &seen) {
  const double momentum = call.attrs.get_float("momentum", 0.9F);
  const auto move = [&](std::size_t output, std::size_t input, double value) {
    if (outputs.size() <= output) return;
    const double before = call.in(input)->as<const float>()[c];
    outputs[output].as<float>()[c] = static_cast<float>(before * momentum + value * (1 - momentum));
  };
  move(1, 3, seen.mean);
  move(2, 4, seen.variance);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const bool training = call.attrs.get_int("training_mode", 0) != 0;
  if (call.output_count > (training ? 3 : 1))
    fail(QTN_EUNSUPPORTED, "BatchNormalization: ", call.output_count, " outputs with training_mode ", training ? 1 : 0);
  if (call.in(0)->count() == 0) {
    if (call.output_count > 1) fail(QTN_ESHAPE, "BatchNormalization: x is empty, and so has no mean");
    return;
  }
  const Planes x(*call.in(0));
  const double epsilon = call.attrs.get_float("epsilon", kDefaultEpsilon);
  parallel_for(static_cast<std::size_t>(x.channels), [&](std::size_t channel) {
    const auto c = static_cast<std::int64_t>(channel);
    const auto at = [&](std::size_t i) { return call.in(i)->as<const float>()[c]; };
    Statistics used{at(3), at(4)};
    if (training) {
      used = statistics_of(x, c);
      move_statistics(call, outputs, c, used);
    }
    const auto [factor, addend] = channel_line(at(1), at(2), used.mean, used.variance, epsilon);
    for (std::int64_t b = 0; b < x.batches; ++b) {
      const std::int64_t plane = (b * x.channels + c) * x.size;
      const float *from = x.data + plane;
      float *to = outputs[0].as<float>() + plane;
      for (std::int64_t i = 0; i < x.size; ++i) to[i] = from[i] * factor + addend;
    }
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
