// SPDX-License-Identifier: Apache-2.0
// Transformers that are hard on quantization, made by random.
#pragma once

#include "random_network.hpp"

namespace qtn::test {

/// What is wrong with a network of rows of features, or with its data.
enum class FeatureFlaw {
  none,
  outlying_features,  ///< a few that normalizations make 10 to 100 times as large as the others
  outlying_rows,    ///< the first row of each sample has features of 100 times the others, as the first token often has
  rare_rows,        ///< now and then a row is 10 times the others
  dead_features,    ///< scales of 1e-20 to 1e-10 behind a normalization
  spread_features,  ///< scales up to 10^4 apart, which the weights take back
  zero_weights,     ///< of columns and now and then of a whole layer
  huge_biases,      ///< up to 10^4 times the others
  weight_outliers,  ///< one weight of a layer is 100 times the others
  constant_rows,    ///< all rows of a sample are the same
  count,
};

class AwkwardFeatures : RandomNetwork {
 public:
  AwkwardFeatures(unsigned seed, FeatureFlaw flaw)
      : RandomNetwork(seed), flaw_(flaw), rows_(16 << pick(4)), width_(8 + 8 * pick(3)) {
    builder_.input("x0", {1, rows_, width_});
    const int blocks = 1 + pick(3);
    for (int i = 0; i < blocks; ++i) chance(0.4) ? add_attention() : add_perceptron();
    add_head();
    graph_ = builder_.build({last_});
  }

  const graph::Graph &graph() const { return graph_; }

  /// From the same distribution whatever the seed.
  quant::Samples samples(std::size_t count, unsigned seed) const {
    return {count, [flaw = flaw_, count = rows_, width = width_, seed](std::size_t i) {
              std::minstd_rand engine(seed + 1000 * static_cast<unsigned>(i));
              Tensor x = normal({1, count, width}, engine());
              float *rows = x.as<float>();
              for (std::int64_t r = 0; r < count; ++r, rows += width) {
                if (flaw == FeatureFlaw::outlying_rows && r == 0) rows[1] = rows[5] = 100;
                if (flaw == FeatureFlaw::rare_rows && std::bernoulli_distribution(0.05)(engine))
                  for (std::int64_t j = 0; j < width; ++j) rows[j] *= 10;
                if (flaw == FeatureFlaw::constant_rows) std::copy_n(x.as<float>(), width, rows);
              }
              return std::vector<Tensor>{x};
            }};
  }

 private:
  /// Normalizes the last value; `scales_` is what its features were multiplied by.
  void add_norm() {
    Tensor gamma(QTN_FLOAT32, {width_});
    scales_.assign(static_cast<std::size_t>(width_), 1);
    for (std::int64_t j = 0; j < width_; ++j) {
      float &scale = scales_[static_cast<std::size_t>(j)];
      if (flaw_ == FeatureFlaw::outlying_features && chance(0.1)) scale = number(10, 100);
      if (flaw_ == FeatureFlaw::dead_features && chance(0.3)) scale = std::pow(10.0f, number(-20, -10));
      if (flaw_ == FeatureFlaw::spread_features) scale = std::pow(10.0f, number(-2, 2));
      gamma.as<float>()[j] = scale * number(0.5f, 1.5f);
    }
    std::vector<std::string> operands{constant(gamma)};
    const bool rms = chance(0.3);
    if (!rms && chance(0.7)) operands.push_back(constant(random({width_}, 0.1f)));
    step(rms ? "RMSNormalization" : "LayerNormalization", operands);
  }

  /// What follows takes the scales back where features are spread, and keeps outlying ones.
  void add_product(const std::string &x, std::int64_t inputs, std::int64_t outputs, bool after_norm) {
    Tensor weight = random({inputs, outputs}, std::sqrt(1.0f / static_cast<float>(inputs)));
    for (std::int64_t j = 0; j < inputs; ++j)
      for (std::int64_t c = 0; c < outputs; ++c) {
        float &w = weight.as<float>()[j * outputs + c];
        if (after_norm && flaw_ == FeatureFlaw::spread_features) w /= scales_[static_cast<std::size_t>(j)];
        if (flaw_ == FeatureFlaw::zero_weights && c % 4 == 1) w = 0;
      }
    if (flaw_ == FeatureFlaw::zero_weights && chance(0.1)) std::fill_n(weight.as<float>(), weight.count(), 0.0f);
    if (flaw_ == FeatureFlaw::weight_outliers) weight.as<float>()[pick(static_cast<int>(weight.count()))] *= 100;
    last_ = x;
    step("MatMul", {constant(weight)});
    Tensor bias = random({outputs}, 0.2f);
    for (std::int64_t c = 0; c < outputs; ++c)
      if (flaw_ == FeatureFlaw::huge_biases && chance(0.2)) bias.as<float>()[c] *= std::pow(10.0f, number(1, 4));
    if (chance(0.8)) step("Add", {constant(bias)});
  }

  void add_perceptron() {
    const std::string before = last_;
    add_norm();
    add_product(last_, width_, 2 * width_, true);
    step(chance(0.6) ? "Gelu" : "Relu", {});
    add_product(last_, 2 * width_, width_, false);
    step("Add", {before});
  }

  void add_attention() {
    const std::string before = last_;
    add_norm();
    const std::string normal = last_;
    std::string made[3];
    for (std::string &one : made) {
      add_product(normal, width_, width_, true);
      one = last_;
    }
    Attrs last_axes;
    last_axes.set("perm", std::vector<std::int64_t>{0, 2, 1});
    last_ = made[1];
    step("Transpose", {}, last_axes);
    const std::string keys = last_;
    last_ = made[0];
    step("MatMul", {keys});
    step("Div", {constant(Tensor::scalar(std::sqrt(static_cast<float>(width_))))});
    step("Softmax", {});
    step("MatMul", {made[2]});
    add_product(last_, width_, width_, false);
    step("Add", {before});
  }

  void add_head() {
    add_norm();
    const std::string x = last_;
    Attrs keep;
    keep.set("keepdims", std::int64_t{0});
    if (chance(0.5))
      step("ReduceMean", {constant(Tensor::from<std::int64_t>(QTN_INT64, {1}, std::array{std::int64_t{1}}))}, keep);
    add_product(last_, width_, 6, true);
    if (chance(0.3)) step("Softmax", {});
  }

  const FeatureFlaw flaw_;
  const std::int64_t rows_, width_;
  graph::Graph graph_;
  std::vector<float> scales_;
};

}  // namespace qtn::test
