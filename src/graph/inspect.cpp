// SPDX-License-Identifier: Apache-2.0
#include "graph/inspect.hpp"

#include <algorithm>

#include "base/json_writer.hpp"
#include "graph/integer.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "graph/tables.hpp"

namespace qtn::graph {
namespace {

void write_names(JsonWriter &json, const char *key, const Graph &g, const std::vector<ValueId> &ids) {
  json.key(key);
  json.begin_list();
  for (const ValueId v : ids) json.value(v == kNoValue ? "" : g.value(v).name);
  json.end_list();
}

void write_grid(JsonWriter &json, const Value &v, const std::string &prefix) {
  if (!is_8bit_activation(v.quantizer)) return;
  json.member(prefix + "quantized_dtype", dtype_name(v.quantizer->dtype()));
  json.member(prefix + "scale", v.quantizer->scale());
  json.member(prefix + "zero_point", v.quantizer->zero_point());
}

void write_interface(JsonWriter &json, const char *key, const Graph &g, const std::vector<ValueId> &ids) {
  json.key(key);
  json.begin_list();
  for (const ValueId id : ids) {
    const Value &v = g.value(id);
    json.begin_object();
    json.member("name", v.name);
    json.member("dtype", v.dtype ? dtype_name(*v.dtype) : "?");
    if (v.shape) json.member("shape", *v.shape);
    write_grid(json, v, "");
    json.end_object();
  }
  json.end_list();
}

/// A node that runs.
struct Running {
  const Node &node;
  IntegerForm form;
  qdtype real;  ///< of its first output

  bool integer() const { return form != IntegerForm::none; }
};

/// What follows from shapes alone is computed when a session plans: such nodes never run.
std::vector<Running> running_nodes(const Graph &g) {
  std::optional<PartlyInferred> known;
  if (const auto types = declared_input_types(g, 1)) known = infer_partly(g, *types, {}, Misfit::stops);
  const Tables tables{g};
  std::vector<Running> running;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    const ValueId y = node.outputs.empty() ? kNoValue : node.outputs[0];
    const bool inferred = known && y != kNoValue;
    const auto index = static_cast<std::size_t>(y);
    if (inferred && known->constants[index].has_data()) continue;
    qdtype real = y == kNoValue ? QTN_FLOAT32 : g.value(y).dtype.value_or(QTN_FLOAT32);
    if (inferred && known->types[index]) real = known->types[index]->dtype;
    running.push_back({node, tables.has(n) ? IntegerForm::table : integer_form(g, node), real});
  }
  return running;
}

/// Why a node of a quantized model runs on floats, or slowly; empty where it does not.
std::string reason_of(const Graph &g, const Running &running) {
  if (running.form == IntegerForm::definition && !has_quantized_run(running.node))
    return "no kernel takes it: it runs by its definition, slowly";
  return running.integer() || running.real != QTN_FLOAT32 ? std::string() : float_reason(g, running.node);
}

/// Constant operands of products, whose type says how much they take.
bool has_weights(const Graph &g, const Node &node) {
  const bool product = is_linear(node) || is_dynamic_product(node) || integer_form(g, node) == IntegerForm::recurrent;
  return product && node.inputs[1] != kNoValue && g.value(node.inputs[1]).is_constant();
}

void write_node(JsonWriter &json, const Graph &g, const Running &running, bool quantized) {
  const Node &node = running.node;
  json.begin_object();
  json.member("name", node.name);
  json.member("op", node.op->name);
  json.member("dtype", running.integer() ? "int8" : dtype_name(running.real));
  write_names(json, "inputs", g, node.inputs);
  write_names(json, "outputs", g, node.outputs);
  const ValueId y = node.outputs.empty() ? kNoValue : node.outputs[0];
  if (y != kNoValue) write_grid(json, g.value(y), "output_");
  if (const std::string reason = quantized ? reason_of(g, running) : ""; !reason.empty()) json.member("reason", reason);
  if (has_weights(g, node)) json.member("weight_dtype", dtype_name(g.value(node.inputs[1]).constant.dtype()));
  json.end_object();
}

}  // namespace

std::string inspect_json(const Graph &model) {
  Graph g = model;
  run_passes(g, Pipeline::execution);  // as a session sees it: constants folded, activations fused
  bool quantized = false;
  std::int64_t parameters = 0;
  std::size_t bytes = 0;
  for (const Value &v : g.values) {
    quantized = quantized || v.quantizer;
    if (!v.is_constant()) continue;
    parameters += v.constant.count();
    bytes += v.constant.nbytes();
  }
  const std::vector<Running> nodes = running_nodes(g);
  JsonWriter json;
  json.begin_object();
  json.member("name", g.name);
  json.member("quantized", quantized);
  write_interface(json, "inputs", g, g.inputs);
  write_interface(json, "outputs", g, g.outputs);
  json.member("parameters", parameters);
  json.member("parameter_bytes", bytes);
  json.key("nodes");
  json.begin_list();
  for (const Running &running : nodes) write_node(json, g, running, quantized);
  json.end_list();
  json.key("float_nodes");
  json.begin_list();
  for (const Running &running : nodes)
    if (!running.integer() && running.real == QTN_FLOAT32) json.value(running.node.name);
  json.end_list();
  json.end_object();
  return json.take();
}

NodeCounts count_nodes(const Graph &model) {
  Graph g = model;
  run_passes(g, Pipeline::execution);
  const std::vector<Running> nodes = running_nodes(g);
  const auto integer = std::count_if(nodes.begin(), nodes.end(), [](const Running &node) { return node.integer(); });
  return {nodes.size(), static_cast<std::size_t>(integer)};
}

}  // namespace qtn::graph
