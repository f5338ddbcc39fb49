// SPDX-License-Identifier: Apache-2.0
#include "graph/channel_constants.hpp"

#include <algorithm>

#include "graph/integer.hpp"

namespace qtn::graph {
namespace {

constexpr const char *kSuffix = "_channels";

/// How many axes of a result lie behind its channels.
std::size_t axes_behind(const Graph &g, const Node &product) {
  return output_channel_axis(product) == 0 ? g.value(product.inputs[1]).constant.rank() - 2 : 0;
}

ValueId reshaped(Graph &g, ValueId v, const Shape &shape) {
  const Tensor &constant = g.value(v).constant;
  if (constant.shape() == shape) return v;
  return g.add_constant(g.value(v).name + kSuffix, constant.to_contiguous().reshaped(shape));
}

}  // namespace

ValueId operand_of_channels(Graph &g, const Node &product, ValueId v) {
  const Tensor &weight = g.value(product.inputs[1]).constant, &constant = g.value(v).constant;
  if (!weight.has_data() || weight.rank() < 2 || !constant.has_data()) return kNoValue;
  const std::size_t behind = axes_behind(g, product), rank = constant.rank();
  // More axes than the result has would be added to it; how many a product of matrices has is not known.
  if (rank > std::max<std::size_t>(1, behind == 0 ? 0 : behind + 2)) return kNoValue;
  const std::int64_t channels = weight.dim(output_channel_axis(product));
  if (constant.count() == 1) return rank < 2 ? v : reshaped(g, v, {});
  const bool fits = constant.count() == channels && rank > behind && constant.dim(rank - 1 - behind) == channels;
  return fits ? reshaped(g, v, {channels}) : kNoValue;
}

ValueId broadcast_of_channels(Graph &g, const Node &product, ValueId v) {
  if (v == kNoValue) return v;
  const Tensor &constant = g.value(v).constant;
  if (constant.count() == 1) return constant.rank() < 2 ? v : reshaped(g, v, {});
  Shape shape{constant.count()};
  for (std::size_t i = axes_behind(g, product); i > 0; --i) shape.push_back(1);
  return reshaped(g, v, shape);
}

}  // namespace qtn::graph
