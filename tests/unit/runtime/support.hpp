// SPDX-License-Identifier: Apache-2.0
// Small quantized models, and running them on every instruction set.
#pragma once

#include "base/cpu.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"

namespace qtn::test {

Tensor random(const Shape &shape, float low, float high, unsigned seed);

/// A convolution with random weights and bias.
void add_conv(GraphBuilder &b, const std::string &name, const std::string &x, const std::string &y, const Shape &weight,
              const Attrs &a);

graph::Graph quantized(const graph::Graph &g, const quant::Config &config = quant::Config("onnx"));

/// The recipe "onnx" with weights of seven bits, for which kernels may differ.
quant::Config seven_bit_weights();

/// Symbolic batch for sessions; a graph calibrated at batch 1.
graph::Graph any_batch(graph::Graph g);

void expect_equal(const Tensor &got, const Tensor &want, const std::string &what);

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
