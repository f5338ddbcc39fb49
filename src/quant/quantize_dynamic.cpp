// SPDX-License-Identifier: Apache-2.0
#include "quant/quantize_dynamic.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "core/integer_type.hpp"
#include "graph/edges.hpp"
#include "graph/facts.hpp"
#include "graph/integer.hpp"
#include "graph/passes/quantize_attention.hpp"
#include "graph/pipelines.hpp"
#include "graph/tensors.hpp"
#include "quant/classify.hpp"
#include "quant/rule_targets.hpp"
#include "quant/stored_weights.hpp"
#include "quant/weights.hpp"

namespace qtn::quant {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

constexpr const char *kWho = "dynamic";

bool is_convolution_by_weights(const Node &node) {
  return graph::is_linear(node) && graph::is_convolution(node) && !node.op->product->channel_groups;
}

Tensor weights_of(const Graph &g, const Node &node, const Settings &settings, const char *who) {
  const Tensor q = quantize_weight_of(g, node, nullptr, 1.0, settings, who);
  if (q.quantizer()->per_block())
    fail(QTN_EUNSUPPORTED, who, ": weight \"", g.value(node.inputs[1]).name, "\" of node \"", node.name, "\" would be ",
         dtype_name(q.dtype()), " in blocks, not per tensor or channel");
  // MatMulInteger and ConvInteger take whole bytes.
  return in_integer_type(q, QTN_INT8);
}

/// `op` in the place of the node, with its bias.
Node integer_product(Graph &g, const Node &node, const ops::OpDef &op, Attrs attrs, const Tensor &q,
                     const ops::OwnGrid &grid) {
  const std::string name = graph::original_name(g.value(node.inputs[1]));
  const std::vector<float> scales(q.quantizer()->scales().begin(), q.quantizer()->scales().end());
  const Shape shape = scales.size() > 1 ? Shape{static_cast<std::int64_t>(scales.size())} : Shape{};
  ops::set_own_grid(attrs, grid);
  Node product{node.name, &op, std::move(attrs), {node.inputs[0]}, node.outputs, node.clamp};
  product.inputs.push_back(g.add_constant(name + "_quantized", q.with_quantizer(nullptr)));
  product.inputs.push_back(g.add_constant(name + "_scale", Tensor::from<float>(QTN_FLOAT32, shape, std::span(scales))));
  if (const ValueId bias = input_of(node, 2); bias != kNoValue)
    product.inputs.insert(product.inputs.end(), {kNoValue, bias});
  return product;
}

Node dynamic_convolution(Graph &g, const Node &node, const Settings &settings) {
  const Tensor q = weights_of(g, node, settings, kWho);
  return integer_product(g, node, ops::kDynamicQuantizeConv, node.attrs, q, {own_grid_numerics(settings)});
}

class Dynamic {
 public:
  Dynamic(Graph &g, const Config &config, const DynamicOptions &options)
      : g_(g), facts_(g), stored_(g, kWho), config_(config), options_(options) {}

  void run() {
    std::vector<Node> nodes;
    std::swap(nodes, g_.nodes);
    for (Node &node : nodes)
      if (!replace(node)) g_.nodes.push_back(with_integers(std::move(node)));
    graph::remove_dead(g_);
  }

 private:
  bool replace(const Node &node) {
    const bool convolution = is_convolution_by_weights(node);
    if (convolution ? !options_.convolutions : !has_dynamic_form(g_, facts_, node)) return false;
    if (convolution && !product_misfit(g_, facts_, node, graph::kSureDepth).empty()) return false;
    const std::optional<Settings> settings = config_.settings_for(node);
    if (!settings) return false;
    g_.nodes.push_back(convolution ? dynamic_convolution(g_, node, *settings)
                                   : dynamic_product(g_, node, *settings, options_.granularity, kWho));
    return true;
  }

  /// A recurrent layer with its weights in integers, an embedding with its table, any other node as it is.
  Node with_integers(Node node) {
    if (const std::optional<Settings> settings = config_.settings_for(node)) stored_.quantize_table(node, *settings);
    return node;
  }

  Graph &g_;
  const graph::Facts facts_;
  StoredWeights stored_;
  const Config &config_;
  const DynamicOptions options_;
};

}  // namespace

Numerics own_grid_numerics(const Settings &settings) {
  switch (parse_numerics(settings.keys.get_string("numerics", "onnx"))) {
    case Numerics::fbgemm:  // without reduce_range that is what qnnpack has
      return settings.keys.get_int("reduce_range", 0) != 0 ? Numerics::fbgemm : Numerics::qnnpack;
    case Numerics::qnnpack:
      return Numerics::qnnpack;
    default:
      return Numerics::onnx;
  }
}

bool has_dynamic_form(const Graph &g, const graph::Facts &facts, const Node &node) {
  return graph::is_linear(node) && !graph::is_convolution(node) &&
         product_misfit(g, facts, node, graph::kWeightDepth).empty();
}

Node dynamic_product(Graph &g, const Node &node, const Settings &settings, std::optional<ops::Granularity> granularity,
                     const char *who) {
  constexpr std::int32_t kTransposed[] = {1, 0};
  const Tensor q = weights_of(g, node, settings, who);
  const Tensor columns = graph::output_channel_axis(node) == 1 ? q : q.permute(kTransposed).to_contiguous();
  const Numerics numerics = own_grid_numerics(settings);
  const auto usual = numerics == Numerics::onnx ? ops::Granularity::row : ops::Granularity::tensor;
  return integer_product(g, node, ops::kDynamicQuantizeMatMul, {}, columns, {numerics, granularity.value_or(usual)});
}

Graph quantize_dynamic(const Graph &float_graph, const Config &config, const DynamicOptions &options) {
  graph::require_float(float_graph, "dynamic");
  Graph g = float_graph;
  graph::run_passes(g, graph::Pipeline::dynamic_quantization);
  require_nodes(config, float_graph, g);
  if (options.granularity != ops::Granularity::tensor)  // whose promise is what ONNX Runtime does
    graph::quantize_attention(g, [&](const Node &node) {
      const std::optional<Settings> settings = config.settings_for(node);
      return settings ? settings->attention : graph::AttentionMode::in_float;
    });
  Dynamic(g, config, options).run();
  graph::extend_grids(g);
  return g;
}

}  // namespace qtn::quant
