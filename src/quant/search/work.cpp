// SPDX-License-Identifier: Apache-2.0
#include "quant/search/work.hpp"

#include <algorithm>
#include <optional>

#include "graph/integer.hpp"

namespace qtn::quant {
namespace {

/// Multiplications in the time in which one element is read and written, where kernels have registers full of products.
constexpr double kOfElement = 16;

double products_of_element(const graph::Graph &g, const graph::Node &node) {
  if (!graph::is_linear(node) || !g.value(node.inputs[1]).is_constant()) return 0;
  const Tensor &weight = g.value(node.inputs[1]).constant;
  const std::int64_t channels = graph::output_channels(node, weight.shape());
  return channels == 0 ? 0 : static_cast<double>(weight.count()) / static_cast<double>(channels);
}

}  // namespace

std::vector<double> work_of_nodes(const graph::Graph &g, std::span<const Tensor> inputs) {
  std::vector<ops::TensorType> given;
  std::vector<Tensor> values;
  for (const Tensor &input : inputs) {
    given.push_back({input.dtype(), input.shape()});
    values.push_back(graph::may_say_shapes(given.back()) ? input : Tensor());
  }
  const auto types = graph::infer_partly(g, given, values, graph::Misfit::stops).types;
  std::vector<double> work(g.nodes.size(), 0);
  double all = 0, known = 0;
  for (std::size_t n = 0; n < work.size(); ++n) {
    const graph::Node &node = g.nodes[n];
    const std::optional<ops::TensorType> &type = types[static_cast<std::size_t>(node.outputs[0])];
    if (!type) continue;
    work[n] = static_cast<double>(element_count(type->shape)) * (kOfElement + products_of_element(g, node));
    all += work[n];
    ++known;
  }
  const double mean = all > 0 ? all / known : 1;
  std::ranges::replace(work, 0.0, mean);
  return work;
}

}  // namespace qtn::quant
