// SPDX-License-Identifier: Apache-2.0
// The constants of Conv, Gemm and MatMul as the integers that kernels pack.
#include <algorithm>

#include "graph/integer.hpp"
#include "ops/common/requantization.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

struct Sums {
  std::int64_t positive = 0, all = 0;
};

Sums sums_of(const std::int8_t *weights, std::size_t count) {
  constexpr std::size_t kPart = 1 << 16;  // of which the sums fit int32
  Sums sums;
  while (count > 0) {
    const std::size_t part = std::min(count, kPart);
    std::int32_t positive = 0, all = 0;
    for (std::size_t i = 0; i < part; ++i) {
      positive += std::max<std::int32_t>(weights[i], 0);
      all += weights[i];
    }
    sums.positive += positive;
    sums.all += all;
    weights += part;
    count -= part;
  }
  return sums;
}

/// Contiguous, and uint8 128 further down.
Tensor as_int8(const Tensor &bytes) {
  const Tensor plain = bytes.to_contiguous();
  if (plain.dtype() != QTN_UINT8) return plain;
  const Tensor moved(QTN_INT8, plain.shape());
  std::transform(plain.as<const std::uint8_t>(), plain.as<const std::uint8_t>() + plain.count(),
                 moved.as<std::int8_t>(), [](std::uint8_t v) { return static_cast<std::int8_t>(v ^ 0x80); });
  return moved;
}

}  // namespace

LinearWeights linear_weights(const graph::Graph &g, const graph::Node &node) {
  const bool conv = node.op == &ops::kConv;
  return linear_weights(to_plain(g.value(node.inputs[1]).constant), graph::output_channel_axis(node),
                        conv ? static_cast<std::size_t>(node.attrs.get_int("group", 1)) : 1);
}

LinearWeights linear_weights(const Tensor &weight, std::size_t channel_axis, std::size_t groups) {
  const bool conv = weight.rank() > 2;
  LinearWeights w;
  w.groups = groups;
  const auto channels = static_cast<std::size_t>(weight.dim(channel_axis));
  w.out = channels / w.groups;
  w.k = channels == 0 ? 0 : static_cast<std::size_t>(weight.count()) / channels;
  // Taps come before channels, as im2row lays them out: [o][c][taps] -> [o][taps][c]. A matrix [k][n] is transposed.
  const auto o_count = static_cast<std::int64_t>(channels), k = static_cast<std::int64_t>(w.k);
  const std::int64_t in = conv ? weight.dim(1) : k, taps = conv ? element_count(weight.shape(), 2, weight.rank()) : 1;
  const Tensor ordered = weight.view({o_count, taps, in}, channel_axis == 0 ? Shape{k, 1, taps} : Shape{1, 0, o_count});
  w.weight = Lazy<Tensor>::by([ordered] { return as_int8(ordered); });
  w.taps = static_cast<std::size_t>(taps);
  return w;
}

void finish_weights(LinearWeights &w, const Tensor *bias, std::size_t channels, const Quantizer &x, const Quantizer &wq,
                    const Quantizer *y) {
  const std::vector<std::int32_t> integers = ops::integer_bias(bias, x, wq, channels);
  const std::vector<float> multipliers = ops::conv_multipliers(x, wq, y, channels);
  w.bias.resize(w.groups * w.out);
  w.multiplier.resize(w.bias.size());
  w.tap_sums = Tensor(QTN_INT32, Shape{static_cast<std::int64_t>(w.bias.size() * w.taps)});
  const std::size_t in = w.k / std::max<std::size_t>(1, w.taps);
  for (std::size_t o = 0; o < w.bias.size(); ++o) {
    std::int64_t positive = 0, sum = 0;
    for (std::size_t tap = 0; tap < w.taps; ++tap) {
      const Sums of_tap = sums_of(w.filter(o) + tap * in, in);
      w.tap_sums.as<std::int32_t>()[o * w.taps + tap] = static_cast<std::int32_t>(of_tap.all);
      positive += of_tap.positive;
      sum += of_tap.all;
    }
    const std::int64_t negative = sum - positive, below = x.zero_point(), above = 255 - below;
    const std::int64_t most = integers[o % channels] + above * positive - below * negative;
    const std::int64_t least = integers[o % channels] + above * negative - below * positive;
    w.sums_fit = w.sums_fit && most <= INT32_MAX && least >= INT32_MIN;
    // May wrap on the way to sums that fit; the accumulator wraps back by the same amount.
    w.bias[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(integers[o % channels]) -
                                          static_cast<std::uint32_t>(sum) * static_cast<std::uint32_t>(x.zero_point()));
    w.multiplier[o] = multipliers[o % channels];
  }
}

}  // namespace qtn::runtime
