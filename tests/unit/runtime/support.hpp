// SPDX-License-Identifier: Apache-2.0
// Small quantized models, and running them on every instruction set.
#pragma once

#include <random>

#include "base/cpu.hpp"
#include "quant/calibrate.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"

namespace qtn::test {

inline Tensor random(const Shape &shape, float low, float high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = uniform(generator);
  return t;
}

/// A convolution with random weights and bias.
inline void add_conv(GraphBuilder &b, const std::string &name, const std::string &x, const std::string &y,
                     const Shape &weight, const Attrs &a) {
  b.constant(name + ".weight", random(weight, -0.5f, 0.5f, static_cast<unsigned>(name.size() * 31 + weight.size())));
  b.constant(name + ".bias", random({weight[0]}, -0.3f, 0.3f, static_cast<unsigned>(weight[0])));
  b.node("Conv", name, {x, name + ".weight", name + ".bias"}, {y}, a);
}

inline graph::Graph quantized(const graph::Graph &g, const quant::Config &config = quant::Config("onnx")) {
  quant::PreparedModel prepared = quant::prepare(g, config);
  for (unsigned i = 0; i < 4; ++i) {
    std::vector<Tensor> samples;
    for (const graph::ValueId v : g.inputs) samples.push_back(random(*g.value(v).shape, -1.0f, 1.5f, i));
    std::vector<const Tensor *> pointers;
    for (const Tensor &t : samples) pointers.push_back(&t);
    quant::calibrate(prepared, pointers);
  }
  return quant::convert(prepared, nullptr);
}

/// The recipe "onnx" with weights of seven bits, for which kernels may differ.
inline quant::Config seven_bit_weights() {
  quant::Config config("onnx");
  const Attrs settings = attrs({{"weight_reduce_range", std::int64_t{1}}});
  config.set("*", &settings);
  return config;
}

/// Symbolic batch for sessions; a graph calibrated at batch 1.
inline graph::Graph any_batch(graph::Graph g) {
  for (const graph::ValueId v : g.inputs) (*g.value(v).shape)[0] = -1;
  return g;
}

inline void expect_equal(const Tensor &got, const Tensor &want, const std::string &what) {
  if (got.shape() != want.shape())
    fail_test(what, ": shape ", to_string(got.shape()), ", want ", to_string(want.shape()));
  for (std::int64_t i = 0; i < got.count(); ++i)
    if (got.as<float>()[i] != want.as<float>()[i])
      fail_test(what, ": element ", i, " of ", to_string(got.shape()), " is ", got.as<float>()[i], ", want ",
                want.as<float>()[i]);
}

/// body(name) with kernels limited to each instruction set that this CPU has, best first. ThreadSanitizer sees the best one
/// only: threads share work in the same way by all of them, and plain loops would take most of an hour.
template <class Body>
void each_isa(Body &&body) {
  const std::string best = isa_name(isa());
#ifdef __SANITIZE_THREAD__
  return body(best.c_str());
#endif
  for (const char *name : {"amx", "avx512vnni", "avx512", "avxvnni", "avx2", "i8mm", "dotprod", "neon", "scalar"}) {
    try {
      set_isa(name);
    } catch (const Error &) {
      continue;  // more than this CPU has
    }
    body(name);
  }
  set_isa(best.c_str());
}

}  // namespace qtn::test
