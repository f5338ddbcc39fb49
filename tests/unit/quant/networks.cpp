// SPDX-License-Identifier: Apache-2.0
#include "quant/networks.hpp"

#include <cmath>
#include <random>

namespace qtn::test {

Tensor normal(const Shape &shape, unsigned seed, float deviation) {
  std::minstd_rand engine(seed);
  std::normal_distribution<float> value(0, deviation);
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = value(engine);
  return t;
}

quant::Samples normal_samples(const Shape &shape, std::size_t count) {
  return {count, [shape](std::size_t i) { return std::vector<Tensor>{normal(shape, static_cast<unsigned>(100 + i))}; }};
}

graph::Graph chain(float spread) {
  Tensor first = normal({4, 2, 3, 3}, 1, 0.3f), bias = normal({4}, 2, 0.3f), second = normal({4, 1, 3, 3}, 3, 0.3f);
  for (std::int64_t c = 0; c < 4; ++c) {
    const float factor = std::pow(spread, static_cast<float>(c) / 3);
    for (std::int64_t i = 0; i < 18; ++i) first.as<float>()[c * 18 + i] *= factor;
    bias.as<float>()[c] *= factor;
    for (std::int64_t i = 0; i < 9; ++i) second.as<float>()[c * 9 + i] /= factor;
  }
  Attrs padded, grouped, slope, pool, by_rows;
  padded.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  grouped = padded;
  grouped.set("group", std::int64_t{4});
  slope.set("alpha", 0.1);
  pool.set("kernel_shape", std::vector<std::int64_t>{2, 2});
  pool.set("strides", std::vector<std::int64_t>{2, 2});
  by_rows.set("transB", std::int64_t{1});
  GraphBuilder builder;
  builder.input("x", {-1, 2, 6, 6})
      .constant("w1", first)
      .constant("b1", bias)
      .constant("w2", second)
      .constant("b2", normal({4}, 4, 0.3f))
      .constant("w3", normal({6, 4, 1, 1}, 5, 0.5f))
      .constant("b3", normal({6}, 6, 0.3f))
      .constant("w4", normal({5, 54}, 7, 0.2f))
      .constant("b4", normal({5}, 8, 0.2f))
      .node("Conv", "first", {"x", "w1", "b1"}, {"a"}, padded)
      .node("Relu", "relu1", {"a"}, {"b"})
      .node("Conv", "second", {"b", "w2", "b2"}, {"c"}, grouped)
      .node("LeakyRelu", "leaky", {"c"}, {"d"}, slope)
      .node("MaxPool", "pool", {"d"}, {"e"}, pool)
      .node("Conv", "third", {"e", "w3", "b3"}, {"f"})
      .node("Relu", "relu2", {"f"}, {"g"})
      .node("Flatten", "flatten", {"g"}, {"h"})
      .node("Gemm", "last", {"h", "w4", "b4"}, {"y"}, by_rows);
  graph::Graph g = builder.build({"y"});
  graph::run_passes(g, graph::Pipeline::inference);
  graph::normalize_products(g);
  return g;
}

quant::PreparedModel calibrated(const graph::Graph &g, const quant::Config &config, const quant::Samples &samples) {
  quant::PreparedModel p = quant::prepare(g, config);
  for (std::size_t s = 0; s < samples.count; ++s) {
    const Tensor x = samples.read(s)[0];
    const Tensor *inputs[] = {&x};
    quant::calibrate(p, inputs);
  }
  return p;
}

quant::Noise difference(const graph::Graph &a, const graph::Graph &b, const quant::Samples &samples) {
  quant::Noise noise;
  for (std::size_t s = 0; s < samples.count; ++s) {
    const std::vector<Tensor> inputs = samples.read(s);
    noise.add(graph::evaluate(a, inputs)[0], graph::evaluate(b, inputs)[0]);
  }
  return noise;
}

}  // namespace qtn::test
