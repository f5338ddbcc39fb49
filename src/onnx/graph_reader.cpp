// SPDX-License-Identifier: Apache-2.0
#include "onnx/graph_reader.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "onnx/bodies.hpp"
#include "onnx/composed.hpp"
#include "onnx/onnx.hpp"
#include "onnx/own_functions.hpp"
#include "onnx/tensor_proto.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/custom.hpp"

namespace qtn::onnx {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// A version that every registered operator is at least as old as.
constexpr std::int64_t kNewest = std::numeric_limits<std::int64_t>::max();

bool is_default_domain(const std::string &domain) { return domain.empty() || domain == "ai.onnx"; }

/// The operator of this library that a node names, or nullptr.
const ops::OpDef *find_own(const NodeProto &node) {
  // ONNX Runtime's tools write 16-bit quantization in its own domain, with the same meaning.
  for (const ops::OpDef *op : {&ops::kQuantizeLinear, &ops::kDequantizeLinear})
    if (node.domain == ops::kMicrosoft && node.op == op->name) return op;
  if (const auto function = function_meaning(node.domain, node.op)) return function->op;
  return ops::find_op(is_default_domain(node.domain) ? "" : node.domain, node.op);
}

/// And one that is registered, in the newest form that the file may mean.
ops::OpPtr find_op(const NodeProto &node, std::int64_t version) {
  if (const ops::OpDef *own = find_own(node)) return own;
  return ops::find_registered(is_default_domain(node.domain) ? "" : node.domain, node.op, version);
}

/// The value of a Constant node.
Tensor constant_value(const Attrs &attrs) {
  for (const auto &[key, value] : attrs) {
    if (key == "value" || key == "sparse_value")
      if (const auto *tensor = std::get_if<Tensor>(&value)) return *tensor;
    if (key == "value_float") return Tensor::scalar(static_cast<float>(attrs.get_float(key, 0)));
    if (key == "value_int") {
      const std::int64_t integer = attrs.get_int(key, 0);
      return Tensor::from<std::int64_t>(QTN_INT64, Shape{}, std::span(&integer, 1));
    }
    if (key == "value_ints") return Tensor::from_ints(attrs.get_ints(key));
    if (key == "value_floats") {
      const std::vector<double> wide = attrs.get_floats(key);
      const std::vector<float> values(wide.begin(), wide.end());
      return Tensor::from<float>(QTN_FLOAT32, Shape{static_cast<std::int64_t>(values.size())}, std::span(values));
    }
  }
  const std::string key = attrs.size() > 0 ? attrs.begin()->first : std::string("value");
  fail(QTN_EUNSUPPORTED, "attribute \"", key, "\" holds no tensor, number or list of numbers");
}

}  // namespace

bool is_known(const NodeProto &node) { return find_op(node, kNewest) != nullptr; }

bool is_reserved(const std::string &domain, const std::string &op) {
  NodeProto node;
  node.domain = domain;
  node.op = op;
  return find_own(node) || is_composed(node) || (is_default_domain(domain) && ops::is_retired(op));
}

/// The one that the file imports of the domain of a node; kNewest for a domain that it does not import.
std::int64_t GraphReader::version_of(const NodeProto &proto, std::int64_t opset) const {
  if (is_default_domain(proto.domain)) return opset;
  const auto at = std::ranges::find(file_.imports, proto.domain, &Opsets::value_type::first);
  return at == file_.imports.end() ? kNewest : at->second;
}

graph::Graph GraphReader::read(const GraphProto &proto) {
  g_.name = proto.name;
  reserve_names(proto);
  for (const protozero::data_view initializer : proto.initializers) add_initializer(initializer);
  for (const ValueInfo &input : proto.inputs) add_input(input);
  for (std::size_t i = 0; i < proto.nodes.size(); ++i) add_node(proto.nodes[i], i);
  if (!file_.unsupported.empty()) return std::move(g_);
  check_nodes();
  for (const ValueInfo &info : proto.values) describe(info);
  for (const ValueInfo &output : proto.outputs) add_output(output);
  if (g_.outputs.empty()) fail(QTN_EFORMAT, "has no outputs");
  g_.inputs.insert(g_.inputs.end(), captures_.begin(), captures_.end());
  graph::sort_topologically(g_);
  return std::move(g_);
}

ValueId GraphReader::value_named(const std::string &name) {
  return outer_ && !own_.contains(name) && !ids_.contains(name) ? capture(name) : own_value(name);
}

ValueId GraphReader::own_value(const std::string &name) {
  const auto [at, is_new] = ids_.try_emplace(name, static_cast<ValueId>(g_.values.size()));
  if (is_new) {
    graph::Value value;
    value.name = name;
    g_.add_value(std::move(value));
    defined_.push_back(false);
  }
  return at->second;
}

/// What stands here for a value of an outer graph: a constant itself, or an input.
ValueId GraphReader::capture(const std::string &name) {
  const ValueId theirs = outer_->value_named(name);
  const graph::Value &value = outer_->g_.value(theirs);
  const ValueId id = ids_[name] = static_cast<ValueId>(g_.values.size());
  g_.add_value(value);
  defined_.push_back(true);
  if (!value.is_constant()) {
    captured_.push_back(theirs);
    captures_.push_back(id);
  }
  return id;
}

/// The value of that name, which must not have been made before.
ValueId GraphReader::define(const std::string &name) {
  const ValueId id = own_value(name);
  if (defined_[static_cast<std::size_t>(id)])
    fail(QTN_EFORMAT, "\"", name, "\" is made twice: names of values must be unique");
  defined_[static_cast<std::size_t>(id)] = true;
  return id;
}

void GraphReader::set_constant(ValueId id, Tensor tensor) {
  graph::Value &value = g_.value(id);
  value.dtype = tensor.dtype();
  value.shape = tensor.shape();
  if (value.dtype == QTN_FLOAT16 || value.dtype == QTN_BFLOAT16) value.file_dtype = value.dtype;
  value.constant = std::move(tensor);
}

/// Names made up here must not meet one that the file uses further down.
void GraphReader::reserve_names(const GraphProto &proto) {
  for (const NodeProto &node : proto.nodes) {
    if (const ops::OpPtr op = find_op(node, kNewest); op && ops::as_custom(*op))
      kept_.insert(node.inputs.begin(), node.inputs.end());
    for (const std::string &name : node.inputs) value_names_.take(name);
    for (const std::string &name : node.outputs) value_names_.take(name);
  }
  for (const ValueInfo &input : proto.inputs) value_names_.take(input.name);
  if (outer_) {
    for (const protozero::data_view initializer : proto.initializers) own_.insert(tensor_name(initializer));
    for (const ValueInfo &input : proto.inputs) own_.insert(input.name);
    for (const NodeProto &node : proto.nodes) own_.insert(node.outputs.begin(), node.outputs.end());
  }
  file_.node_names.take("");
  for (const NodeProto &node : proto.nodes) own_name_.push_back(file_.node_names.take(node.name));
}

void GraphReader::add_initializer(protozero::data_view bytes) {
  const TensorHead head = read_head(bytes);
  value_names_.take(head.name);
  const ValueId id = define(head.name);
  if (kept_.contains(head.name)) return set_constant(id, read_tensor(bytes, file_.folder).second);
  const auto [at, is_new] = file_.tensors.try_emplace(bytes.data());
  if (is_new) at->second = kept(read_tensor(bytes, file_.folder).second);
  set_constant(id, at->second);
  if (head.data_type == QTN_FLOAT16 || head.data_type == QTN_BFLOAT16)
    g_.value(id).file_dtype = static_cast<qdtype>(head.data_type);
}

/// Weights in halves or doubles are read as floats, unless the network itself works on such.
Tensor GraphReader::kept(Tensor tensor) const {
  return file_.kept_types.contains(tensor.dtype()) ? tensor : in_float32(tensor);
}

void GraphReader::add_input(const ValueInfo &input) {
  // Up to IR version 3 every initializer is an input too, as a default value; it stays a constant here.
  const auto known = ids_.find(input.name);
  if (known != ids_.end() && g_.value(known->second).is_constant()) return;
  const std::string what = cat("input \"", input.name, "\"");
  if (!input.is_tensor && !outer_) fail(QTN_EUNSUPPORTED, what, " is not a tensor");
  if (input.elem_type == 0 && !outer_) fail(QTN_EFORMAT, what, " has no element type");
  if (input.elem_type != 0 && !is_stored(input.elem_type))
    fail(QTN_EUNSUPPORTED, what, " is ", data_type_name(input.elem_type), ", which is not supported");
  const ValueId id = define(input.name);
  if (input.elem_type != 0) g_.value(id).dtype = static_cast<qdtype>(input.elem_type);
  g_.value(id).shape = input.shape;
  g_.value(id).symbols = input.symbols;
  g_.inputs.push_back(id);
}

void GraphReader::describe(const ValueInfo &info) {
  const auto known = ids_.find(info.name);
  if (known == ids_.end() || !info.is_tensor) return;
  graph::Value &value = g_.value(known->second);
  if (!value.dtype && is_stored(info.elem_type)) value.dtype = static_cast<qdtype>(info.elem_type);
  if (value.shape) return;
  value.shape = info.shape;
  value.symbols = info.symbols;
}

void GraphReader::add_output(const ValueInfo &output) {
  if (outer_) value_named(output.name);
  const auto known = ids_.find(output.name);
  if (known == ids_.end() || !defined_[static_cast<std::size_t>(known->second)])
    fail(QTN_EFORMAT, "output \"", output.name, "\" is made by no node");
  describe(output);
  g_.outputs.push_back(known->second);
}

std::string GraphReader::node_name(const NodeProto &proto, std::size_t index) {
  if (own_name_[index]) return proto.name;
  return file_.node_names.make(proto.name.empty() ? cat(proto.op, "_", index) : proto.name);
}

/// The value for an operator of this library.
Attr GraphReader::value_of(const AttributeProto &attribute) {
  const auto *made = attribute.made ? std::get_if<Tensor>(&*attribute.made) : nullptr;
  // These stay as they are, and codes of several widths may be views of the same bytes.
  if (made && !is_floating(made->dtype())) return *made;
  const void *place = made ? made->data() : attribute.bytes.data();
  if (const auto at = file_.tensors.find(place); at != file_.tensors.end()) return at->second;
  Attr value = read_attribute(attribute, file_.folder);
  if (auto *tensor = std::get_if<Tensor>(&value)) {
    *tensor = kept(std::move(*tensor));
    if (tensor->nbytes() > 0) file_.tensors.emplace(place, *tensor);
  }
  return value;
}

void GraphReader::set_attributes(const NodeProto &proto, graph::Node &node) {
  for (const AttributeProto &attribute : proto.attributes) {
    if (attribute.graph && node.op && has_bodies(*node.op)) continue;
    const bool custom = node.op && ops::as_custom(*node.op);
    if (!custom && (ops::is_own_attr(attribute.name) || attribute.name.starts_with('_')))
      fail(QTN_EFORMAT, "has an attribute ", attribute.name, ", which is not ONNX's");
    node.attrs.set(attribute.name, custom ? read_attribute_as_it_is(attribute, file_.folder) : value_of(attribute));
  }
  if (const auto function = function_meaning(proto.domain, proto.op))
    for (const auto &[name, value] : function->attrs) node.attrs.set(name, value);
}

/// The graphs that a node runs; what they read of this one becomes operands of the node.
void GraphReader::add_bodies(const NodeProto &proto, graph::Node &node) {
  const std::size_t own = std::max<std::size_t>(node.inputs.size(), node.op == &ops::kLoop ? 2 : 0);
  node.inputs.resize(own, kNoValue);
  std::vector<Body> bodies;
  for (const GraphProto *graph : body_protos(proto, *node.op)) {
    GraphReader reader(file_, this);
    bodies.push_back({reader.read(*graph), reader.captured()});
    if (!file_.unsupported.empty()) return;
    graph::Graph &body = bodies.back().graph;
    if (node.op == &ops::kLoop) take_list_of_one(body, file_.node_names);
    // PyTorch says wrong shapes of branches, with which other engines do not run them; nothing needs these.
    if (node.op == &ops::kIf)
      for (const ValueId v : body.outputs) body.value(v).shape.reset();
    recognize_own_functions(body);
  }
  node.captured = join_captures(bodies, g_);
  for (std::size_t i = 0; i < node.captured; ++i) node.inputs.push_back(bodies[0].captured[i]);
  for (Body &body : bodies) node.bodies.push_back(std::make_shared<const graph::Graph>(std::move(body.graph)));
  check_bodies(node, own);
  for (std::size_t o = 0; o < node.outputs.size(); ++o)
    if (const auto dtype = body_dtype(node, o)) g_.value(node.outputs[o]).dtype = dtype;
}

void GraphReader::add_node(const NodeProto &proto, std::size_t index) {
  const std::int64_t opset = proto.opset ? proto.opset : file_.opset;
  graph::Node node;
  node.name = node_name(proto, index);
  const std::int64_t version = version_of(proto, opset);
  node.op = find_op(proto, version);
  const ops::Custom *custom = node.op ? ops::as_custom(*node.op) : nullptr;
  if (custom && *node.op->domain) file_.opsets[proto.domain] = version == kNewest ? custom->since_version : version;
  std::string op = is_default_domain(proto.domain) ? proto.op : "";
  if (!node.op && !ops::is_retired(op)) {
    const std::string domain = proto.domain.empty() ? "ai.onnx" : proto.domain;
    const std::string imported = version == kNewest ? "not imported" : cat("opset ", version);
    file_.unsupported[cat(proto.op, " (domain ", domain, ", ", imported, ")")].push_back(node.name);
    return;
  }
  try {
    set_attributes(proto, node);
    connect(proto, node);
    if (op == "Constant") {
      if (node.outputs.size() != 1) fail(QTN_EFORMAT, "must have 1 output, not ", node.outputs.size());
      return set_constant(node.outputs[0], constant_value(node.attrs));
    }
    if (!op.empty()) {
      upgrade(op, node, opset);
      if (!custom) node.op = ops::find_op("", op);
    }
    if (node.op && has_bodies(*node.op)) add_bodies(proto, node);
  } catch (const Error &e) {
    fail_at(node.name, proto.op, e);
  }
  if (node.op) g_.nodes.push_back(std::move(node));
}

void GraphReader::connect(const NodeProto &proto, graph::Node &node) {
  for (const std::string &name : proto.inputs) node.inputs.push_back(name.empty() ? kNoValue : value_named(name));
  while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
  std::size_t count = proto.outputs.size();
  while (count > 0 && proto.outputs[count - 1].empty()) --count;
  if (count == 0) fail(QTN_EFORMAT, "has no outputs");
  for (std::size_t i = 0; i < count; ++i)
    node.outputs.push_back(
        define(proto.outputs[i].empty() ? value_names_.make(node.name + "_unused") : proto.outputs[i]));
}

void GraphReader::upgrade(std::string &op, graph::Node &node, std::int64_t opset) {
  ops::OldNode old{op, node.attrs, static_cast<int>(opset), node.inputs.size(), {}, {}};
  ops::upgrade_node(old);
  if (!old.inputs.empty()) {
    std::vector<ValueId> moved;
    for (const std::ptrdiff_t from : old.inputs)
      moved.push_back(from < 0 ? kNoValue : node.inputs.at(static_cast<std::size_t>(from)));
    node.inputs = std::move(moved);
  }
  for (auto &[position, tensor] : old.constants) {
    if (position >= node.inputs.size()) node.inputs.resize(position + 1, kNoValue);
    const ValueId id = define(value_names_.make(cat(node.name, "_input", position)));
    set_constant(id, std::move(tensor));
    node.inputs[position] = id;
  }
}

/// Once everything is known: inputs exist, and counts and attributes are what the operator takes.
void GraphReader::check_nodes() {
  const Tensor unknown = Tensor::meta(QTN_FLOAT32, Shape{});
  std::vector<const Tensor *> inputs;
  for (const graph::Node &node : g_.nodes) try {
      inputs.clear();
      for (const ValueId id : node.inputs) {
        if (id != kNoValue && !defined_[static_cast<std::size_t>(id)])
          fail(QTN_EFORMAT, "reads \"", g_.value(id).name, "\", which no node, input or initializer makes");
        inputs.push_back(id == kNoValue ? nullptr : g_.value(id).is_constant() ? &g_.value(id).constant : &unknown);
      }
      ops::check_call(*node.op, ops::Call{node.attrs, inputs, node.outputs.size()});
    } catch (const Error &e) {
      fail_at(node.name, node.op->name, e);
    }
}

}  // namespace qtn::onnx
