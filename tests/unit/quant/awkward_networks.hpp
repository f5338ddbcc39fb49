// SPDX-License-Identifier: Apache-2.0
// Networks that are hard on quantization, made by random: what trained networks from outside had, and what they may
// have.
#pragma once

#include "random_network.hpp"

namespace qtn::test {

/// What is wrong with a network or with its data.
enum class Flaw {
  none,
  dead_channels,     ///< weights of 1e-20 to 1e-10, with biases that count
  spread_channels,   ///< channels up to 10^4 apart, which the next layer takes back
  zero_weights,      ///< of channels and now and then of a whole layer
  constant_input,    ///< every sample is the same number everywhere
  negative_only,     ///< biases that leave nothing to a Relu
  huge_biases,       ///< up to 10^6 times the weights
  clipped_outputs,   ///< most outputs are at a bound
  variance_of_zero,  ///< BatchNormalization of channels that never moved
  weight_outliers,   ///< one weight of a layer is 100 times the others
  count,
};

class AwkwardNetwork : RandomNetwork {
 public:
  AwkwardNetwork(unsigned seed, Flaw flaw) : RandomNetwork(seed), flaw_(flaw) {
    channels_ = 3;
    side_ = 8;
    builder_.input("x0", {-1, channels_, side_, side_});
    const int layers = 2 + pick(4);
    for (int i = 0; i < layers; ++i) add_block();
    add_head();
    graph_ = builder_.build({last_});
  }

  const graph::Graph &graph() const { return graph_; }

  /// From the same distribution whatever the seed.
  quant::Samples samples(std::size_t count, unsigned seed) const {
    const bool constant = flaw_ == Flaw::constant_input;
    return {count, [=](std::size_t i) {
              Tensor x = normal({1, 3, 8, 8}, seed + 1000 * static_cast<unsigned>(i));
              if (constant) std::fill_n(x.as<float>(), x.count(), 0.7f);
              return std::vector<Tensor>{x};
            }};
  }

 private:
  void add_block() {
    switch (pick(7)) {
      case 0:
        add_conv(4 + 4 * pick(3), 3, 1);
        break;
      case 1:
        add_conv(4 + 4 * pick(3), 1, 1);
        break;
      case 2:
        add_conv(channels_, 3, channels_);
        break;
      case 3: {  // residual
        const std::string before = last_;
        add_conv(channels_, 3, 1);
        activate();
        add_conv(channels_, 1, 1);
        step("Add", {before});
        break;
      }
      case 4: {  // both halves of a Concat
        const std::string before = last_;
        const std::int64_t channels = channels_;
        add_conv(4, 1, 1);
        Attrs axis;
        axis.set("axis", std::int64_t{1});
        step("Concat", {before}, axis);
        channels_ = channels + 4;
        spread_.clear();
        break;
      }
      case 5:
        add_conv(4 + 4 * pick(3), 3, 1);
        activate();
        add_conv(channels_, 3, channels_);
        break;
      default:
        add_conv(8, 3, 1);
        if (side_ > 2) {
          Attrs pool;
          pool.set("kernel_shape", std::vector<std::int64_t>{2, 2});
          pool.set("strides", std::vector<std::int64_t>{2, 2});
          step(chance(0.5) ? "MaxPool" : "AveragePool", {}, pool);
          side_ /= 2;
        }
    }
    activate();
  }

  void activate() {
    Attrs slope;
    slope.set("alpha", 0.1);
    switch (pick(6)) {
      case 0:
      case 1:
      case 2:
        return step("Relu", {});
      case 3:
        return step("LeakyRelu", {}, slope);
      case 4:
        return step("HardSwish", {});
      default:
        return;
    }
  }

  void add_conv(std::int64_t outputs, std::int64_t size, std::int64_t groups) {
    const std::int64_t depth = channels_ / groups * size * size;
    Tensor weight = random({outputs, channels_ / groups, size, size}, std::sqrt(2.0f / static_cast<float>(depth)));
    Tensor bias = random({outputs}, 0.2f);
    for (std::int64_t c = 0; c < outputs; ++c) {
      float *w = weight.as<float>() + c * depth;
      float &b = bias.as<float>()[c];
      for (std::size_t k = 0; groups == 1 && k < spread_.size(); ++k)  // takes the last layer's factors back
        for (std::int64_t t = 0; t < size * size; ++t) w[static_cast<std::int64_t>(k) * size * size + t] /= spread_[k];
      if (groups > 1 && !spread_.empty())
        for (std::int64_t t = 0; t < depth; ++t) w[t] /= spread_[static_cast<std::size_t>(c)];
      spoil(w, depth, b);
    }
    if (flaw_ == Flaw::weight_outliers) weight.as<float>()[pick(static_cast<int>(weight.count()))] *= 100;
    if (flaw_ == Flaw::zero_weights && chance(0.1)) std::fill_n(weight.as<float>(), weight.count(), 0.0f);
    spread_.clear();
    if (flaw_ == Flaw::spread_channels) spread(weight, bias, depth);
    Attrs attrs;
    attrs.set("pads", std::vector<std::int64_t>(4, size / 2));
    attrs.set("group", groups);
    const std::string w = name("w"), b = name("b");
    builder_.constant(w, weight).constant(b, bias);
    step("Conv", {w, b}, attrs);
    channels_ = outputs;
    if (flaw_ == Flaw::variance_of_zero) add_norm();
  }

  void spoil(float *w, std::int64_t depth, float &b) {
    const auto times = [&](float factor) {
      for (std::int64_t t = 0; t < depth; ++t) w[t] *= factor;
    };
    if (flaw_ == Flaw::dead_channels && chance(0.3)) times(std::pow(10.0f, number(-20, -10)));
    if (flaw_ == Flaw::zero_weights && chance(0.3)) times(0);
    if (flaw_ == Flaw::negative_only && chance(0.4)) b = number(-100, -10);
    if (flaw_ == Flaw::huge_biases && chance(0.3)) b *= std::pow(10.0f, number(2, 6));
  }

  void spread(Tensor &weight, Tensor &bias, std::int64_t depth) {
    for (std::int64_t c = 0; c < weight.dim(0); ++c) {
      spread_.push_back(std::pow(10.0f, number(-2, 2)));
      for (std::int64_t t = 0; t < depth; ++t) weight.as<float>()[c * depth + t] *= spread_.back();
      bias.as<float>()[c] *= spread_.back();
    }
  }

  void add_norm() {
    Tensor gamma = random({channels_}, 1), beta = random({channels_}, 0.5f), mean = random({channels_}, 0.2f);
    Tensor variance(QTN_FLOAT32, {channels_});
    for (std::int64_t c = 0; c < channels_; ++c) variance.as<float>()[c] = chance(0.3) ? 0.0f : number(0.5f, 2);
    const std::string names[] = {name("gamma"), name("beta"), name("mean"), name("variance")};
    builder_.constant(names[0], gamma).constant(names[1], beta).constant(names[2], mean).constant(names[3], variance);
    step("BatchNormalization", {names[0], names[1], names[2], names[3]});
  }

  void add_head() {
    const bool pools = chance(0.6);
    if (pools) step("GlobalAveragePool", {});
    step("Flatten", {});
    const std::int64_t inputs = channels_ * (pools ? 1 : side_ * side_);
    const std::string w = name("w"), b = name("b");
    builder_.constant(w, random({inputs, 6}, std::sqrt(1.0f / static_cast<float>(inputs))))
        .constant(b, random({6}, 0.2f));
    step("Gemm", {w, b});
    if (flaw_ == Flaw::clipped_outputs) {
      const std::string lo = name("lo"), hi = name("hi");
      builder_.constant(lo, Tensor::scalar(-0.1f)).constant(hi, Tensor::scalar(0.1f));
      step("Clip", {lo, hi});
    } else if (chance(0.3)) {
      step("Softmax", {});
    }
  }

  const Flaw flaw_;
  graph::Graph graph_;
  std::int64_t channels_, side_;
  std::vector<float> spread_;  // what the last layer's channels were multiplied by
};

}  // namespace qtn::test
