// SPDX-License-Identifier: Apache-2.0
#include "quant/quantize.hpp"

namespace qtn::quant {

graph::Graph quantize(const graph::Graph &float_graph, const Config &config, const Samples &samples, const Attrs *attrs,
                      const Progress &progress) {
  if (attrs) attrs->check({}, "quantize");
  Prepared prepared = prepare(float_graph, config);
  for (std::size_t i = 0; i < samples.count; ++i) {
    const std::vector<Tensor> inputs = samples.read(i);
    std::vector<const Tensor *> pointers;
    for (const Tensor &x : inputs) pointers.push_back(&x);
    calibrate(prepared, pointers);
    if (progress) progress("calibrating", i + 1, samples.count);
  }
  return convert(prepared, nullptr);
}

}  // namespace qtn::quant
