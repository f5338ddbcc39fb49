// SPDX-License-Identifier: Apache-2.0
#include "graph/inspect.hpp"

#include <nlohmann/json.hpp>

#include "graph/integer.hpp"
#include "graph/passes.hpp"

namespace qtn::graph {
namespace {

using Json = nlohmann::ordered_json;

Json names(const Graph &g, const std::vector<ValueId> &ids) {
  Json list = Json::array();
  for (const ValueId v : ids) list.push_back(v == kNoValue ? "" : g.value(v).name);
  return list;
}

Json interface(const Graph &g, const std::vector<ValueId> &ids) {
  Json list = Json::array();
  for (const ValueId id : ids) {
    const Value &v = g.value(id);
    Json item{{"name", v.name}, {"dtype", v.dtype ? dtype_name(*v.dtype) : "?"}};
    if (v.shape) item["shape"] = std::vector<std::int64_t>(v.shape->begin(), v.shape->end());
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace

std::string inspect_json(const Graph &model) {
  Graph g = model;
  optimize(g);  // as a session sees it: constants folded, activations fused
  // What follows from shapes alone is computed when a session plans: such nodes never run.
  std::optional<Inferred> known;
  if (const auto types = declared_input_types(g, 1)) known = infer(g, *types);
  Json nodes = Json::array(), float_nodes = Json::array();
  bool quantized = false;
  for (const Value &v : g.values) quantized = quantized || v.quantizer;
  for (const Node &node : g.nodes) {
    const ValueId y = node.outputs.empty() ? kNoValue : node.outputs[0];
    const auto index = static_cast<std::size_t>(y);
    if (known && y != kNoValue && known->constants[index].has_data()) continue;
    const bool integer = integer_form(g, node) != IntegerForm::none;
    const qdtype real = known && y != kNoValue ? known->types[index].dtype : QTN_FLOAT32;
    Json item{{"name", node.name},
              {"op", node.op->name},
              {"dtype", integer ? "int8" : dtype_name(real)},
              {"inputs", names(g, node.inputs)},
              {"outputs", names(g, node.outputs)}};
    if (y != kNoValue && is_8bit_activation(g.value(y).quantizer)) {
      item["output_scale"] = g.value(y).quantizer->scale();
      item["output_zero_point"] = g.value(y).quantizer->zero_point();
    }
    nodes.push_back(std::move(item));
    if (!integer && real == QTN_FLOAT32) float_nodes.push_back(node.name);
  }
  std::int64_t parameters = 0;
  std::size_t bytes = 0;
  for (const Value &v : g.values) {
    if (!v.is_constant()) continue;
    parameters += v.constant.count();
    bytes += v.constant.nbytes();
  }
  const Json document{{"name", g.name},
                      {"quantized", quantized},
                      {"inputs", interface(g, g.inputs)},
                      {"outputs", interface(g, g.outputs)},
                      {"parameters", parameters},
                      {"parameter_bytes", bytes},
                      {"nodes", std::move(nodes)},
                      {"float_nodes", std::move(float_nodes)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qtn::graph
