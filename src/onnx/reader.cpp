// SPDX-License-Identifier: Apache-2.0
// A model file as a graph.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/limits.hpp"
#include "graph/names.hpp"
#include "onnx/doubles.hpp"
#include "onnx/dynamic.hpp"
#include "onnx/dynamic_function.hpp"
#include "onnx/messages.hpp"
#include "onnx/onnx.hpp"
#include "onnx/qdq.hpp"
#include "onnx/tensor_proto.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::onnx {

using graph::kNoValue;
using graph::ValueId;

namespace {

constexpr std::int64_t kMinOpset = 7, kMaxOpset = 25;
/// Operators are described as this opset has them; nodes of an older one are rewritten.
constexpr std::int64_t kNativeOpset = 21;

bool is_default_domain(const std::string &domain) { return domain.empty() || domain == "ai.onnx"; }

/// The operator that a node names, or nullptr.
const ops::OpDef *find_op(const NodeProto &node) {
  // ONNX Runtime's tools write 16-bit quantization in its own domain, with the same meaning.
  for (const ops::OpDef *op : {&ops::kQuantizeLinear, &ops::kDequantizeLinear})
    if (node.domain == ops::kMicrosoft && node.op == op->name) return op;
  if (function_numerics(node.domain, node.op)) return &ops::kDynamicQuantizeLinear;
  return ops::find_op(is_default_domain(node.domain) ? "" : node.domain, node.op);
}

/// The value of a Constant node.
Tensor constant_value(const Attrs &attrs) {
  for (const auto &[key, value] : attrs) {
    if (key == "value")
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
  fail(QTN_EUNSUPPORTED, "holds no tensor, number or list of numbers");
}

class Reader {
 public:
  explicit Reader(const std::string &folder) : folder_(folder) {}

  graph::Graph read(protozero::data_view bytes) {
    const ModelProto model = read_model(bytes);
    if (!model.graph) fail(QTN_EFORMAT, "holds no graph");
    const std::optional<std::int64_t> opset = model.default_opset();
    if (!opset) fail(QTN_EFORMAT, "does not say which opset it uses");
    if (*opset < kMinOpset || *opset > kMaxOpset)
      fail(QTN_EUNSUPPORTED, "uses opset ", *opset, "; supported are ", kMinOpset, " to ", kMaxOpset);
    opset_ = *opset;
    Numerics numerics = Numerics::onnx;
    for (const auto &[key, value] : model.metadata)
      if (key == kNumericsKey) numerics = parse_numerics(value);

    const GraphProto proto = read_graph(*model.graph);
    if (proto.has_sparse_initializer) fail(QTN_EUNSUPPORTED, "has sparse initializers, which are not supported");
    g_.name = proto.name;
    reserve_names(proto);
    for (const ValueInfo &input : proto.inputs) kept_types_.insert(input.elem_type);
    for (const protozero::data_view initializer : proto.initializers) add_initializer(initializer);
    for (const ValueInfo &input : proto.inputs) add_input(input);
    for (std::size_t i = 0; i < proto.nodes.size(); ++i) add_node(proto.nodes[i], i);
    check_nodes();
    for (const ValueInfo &info : proto.values) describe(info);
    for (const ValueInfo &output : proto.outputs) add_output(output);
    if (g_.outputs.empty()) fail(QTN_EFORMAT, "has no outputs");

    graph::sort_topologically(g_);
    narrow_doubles(g_, value_names_, node_names_);
    settle_constant_grids(g_);
    open_qoperators(g_);
    fold_qdq(g_, numerics);
    fold_dynamic(g_);
    // Shapes that do not fit are found here rather than at the first run. A symbolic batch stands for 1.
    if (const auto inputs = graph::declared_input_types(g_, 1)) check_shapes(*inputs);
    return std::move(g_);
  }

 private:
  void check_shapes(std::span<const ops::TensorType> inputs) const {
    try {
      graph::infer(g_, inputs);
    } catch (const NotKnown &) {
      // They may follow from what an input holds at a run.
      if (std::none_of(inputs.begin(), inputs.end(), graph::may_say_shapes)) throw;
    }
  }

  ValueId value_named(const std::string &name) {
    const auto [at, is_new] = ids_.try_emplace(name, static_cast<ValueId>(g_.values.size()));
    if (is_new) {
      graph::Value value;
      value.name = name;
      g_.add_value(std::move(value));
      defined_.push_back(false);
    }
    return at->second;
  }

  /// The value of that name, which must not have been made before.
  ValueId define(const std::string &name) {
    const ValueId id = value_named(name);
    if (defined_[static_cast<std::size_t>(id)])
      fail(QTN_EFORMAT, "\"", name, "\" is made twice: names of values must be unique");
    defined_[static_cast<std::size_t>(id)] = true;
    return id;
  }

  void set_constant(ValueId id, Tensor tensor) {
    graph::Value &value = g_.value(id);
    value.dtype = tensor.dtype();
    value.shape = tensor.shape();
    value.constant = std::move(tensor);
  }

  /// Names made up here must not meet one that the file uses further down.
  void reserve_names(const GraphProto &proto) {
    for (const NodeProto &node : proto.nodes) {
      for (const std::string &name : node.inputs) value_names_.take(name);
      for (const std::string &name : node.outputs) value_names_.take(name);
    }
    for (const ValueInfo &input : proto.inputs) value_names_.take(input.name);
    node_names_.take("");
    for (const NodeProto &node : proto.nodes) own_name_.push_back(node_names_.take(node.name));
  }

  void add_initializer(protozero::data_view bytes) {
    auto [name, tensor] = read_tensor(bytes, folder_);
    value_names_.take(name);
    // Weights in halves or doubles are read as floats, unless the network itself works on such.
    set_constant(define(name), kept_types_.contains(tensor.dtype()) ? std::move(tensor) : in_float32(tensor));
  }

  void add_input(const ValueInfo &input) {
    // Up to IR version 3 every initializer is an input too, as a default value; it stays a constant here.
    const auto known = ids_.find(input.name);
    if (known != ids_.end() && g_.value(known->second).is_constant()) return;
    const std::string what = cat("input \"", input.name, "\"");
    if (!input.is_tensor) fail(QTN_EUNSUPPORTED, what, " is not a tensor");
    if (input.elem_type == 0) fail(QTN_EFORMAT, what, " has no element type");
    if (!is_stored(input.elem_type))
      fail(QTN_EUNSUPPORTED, what, " is ", data_type_name(input.elem_type), ", which is not supported");
    const ValueId id = define(input.name);
    g_.value(id).dtype = static_cast<qdtype>(input.elem_type);
    g_.value(id).shape = input.shape;
    g_.inputs.push_back(id);
  }

  void describe(const ValueInfo &info) {
    const auto known = ids_.find(info.name);
    if (known == ids_.end() || !info.is_tensor) return;
    graph::Value &value = g_.value(known->second);
    if (!value.dtype && is_stored(info.elem_type)) value.dtype = static_cast<qdtype>(info.elem_type);
    if (!value.shape) value.shape = info.shape;
  }

  void add_output(const ValueInfo &output) {
    const auto known = ids_.find(output.name);
    if (known == ids_.end() || !defined_[static_cast<std::size_t>(known->second)])
      fail(QTN_EFORMAT, "output \"", output.name, "\" is made by no node");
    describe(output);
    g_.outputs.push_back(known->second);
  }

  std::string node_name(const NodeProto &proto, std::size_t index) {
    if (own_name_[index]) return proto.name;
    return node_names_.make(proto.name.empty() ? cat(proto.op, "_", index) : proto.name);
  }

  void add_node(const NodeProto &proto, std::size_t index) {
    graph::Node node;
    node.name = node_name(proto, index);
    node.op = find_op(proto);
    std::string op = is_default_domain(proto.domain) ? proto.op : "";
    try {
      for (const protozero::data_view bytes : proto.attributes) {
        auto [key, value] = read_attribute(bytes, folder_);
        if (key == ops::kNumericsAttr || key.starts_with('_'))
          fail(QTN_EFORMAT, "has an attribute ", key, ", which is not ONNX's");
        node.attrs.set(std::move(key), std::move(value));
      }
      if (const auto numerics = function_numerics(proto.domain, proto.op))
        node.attrs.set(ops::kNumericsAttr, numerics_name(*numerics));
      connect(proto, node);
      if (op == "Constant") {
        if (node.outputs.size() != 1) fail(QTN_EFORMAT, "must have 1 output, not ", node.outputs.size());
        return set_constant(node.outputs[0], constant_value(node.attrs));
      }
      if (opset_ < kNativeOpset && !op.empty()) {
        upgrade(op, node);
        node.op = ops::find_op("", op);
      }
    } catch (const Error &e) {
      // An attribute that is not understood says less than that its operator is not.
      if (node.op) fail_at(node.name, proto.op, e);
    }
    if (!node.op)
      fail(QTN_EUNSUPPORTED, "operator ", proto.op, " (domain ", proto.domain.empty() ? "ai.onnx" : proto.domain,
           ", opset ", opset_, ") of node \"", node.name, "\" is not supported");
    g_.nodes.push_back(std::move(node));
  }

  void connect(const NodeProto &proto, graph::Node &node) {
    for (const std::string &name : proto.inputs) node.inputs.push_back(name.empty() ? kNoValue : value_named(name));
    while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    std::size_t count = proto.outputs.size();
    while (count > 0 && proto.outputs[count - 1].empty()) --count;
    if (count == 0) fail(QTN_EFORMAT, "has no outputs");
    for (std::size_t i = 0; i < count; ++i)
      node.outputs.push_back(
          define(proto.outputs[i].empty() ? value_names_.make(node.name + "_unused") : proto.outputs[i]));
  }

  void upgrade(std::string &op, graph::Node &node) {
    ops::OldNode old{op, node.attrs, static_cast<int>(opset_), node.inputs.size(), {}, {}};
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
  void check_nodes() {
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

  [[noreturn]] static void fail_at(const std::string &name, const std::string &op, const Error &e) {
    const qstatus status = e.status() == QTN_EINVAL ? QTN_EFORMAT : e.status();
    const std::string prefix = op + ": ";
    std::string_view text = e.what();
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    fail(status, "node \"", name, "\" (", op, "): ", text);
  }

  DataFolder folder_;
  std::int64_t opset_ = 0;
  graph::Graph g_;
  std::unordered_map<std::string, ValueId> ids_;
  std::vector<bool> defined_;  ///< by value id: an input, a constant, or the output of a node
  graph::UniqueNames value_names_, node_names_;
  std::set<std::int32_t> kept_types_;  ///< element types of inputs
  std::vector<bool> own_name_;         ///< by node: its name is not empty and the first of that kind
};

/// `who` begins every message: the path, or "model".
graph::Graph parse_as(std::span<const std::byte> bytes, const std::string &folder, const std::string &who) {
  if (bytes.empty()) fail(QTN_EFORMAT, who, " is not a valid ONNX file: it is empty");
  try {
    return Reader(folder).read({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  } catch (const protozero::end_of_buffer_exception &) {
    fail(QTN_EFORMAT, who, " is not a valid ONNX file: it is truncated (", bytes.size(), " bytes) or damaged");
  } catch (const protozero::exception &e) {
    fail(QTN_EFORMAT, who, " is not a valid ONNX file: ", e.what());
  } catch (const Error &e) {
    if (e.status() == QTN_EFORMAT || e.status() == QTN_EINVAL)
      fail(QTN_EFORMAT, who, " is not a valid ONNX file: ", e.what());
    fail(e.status(), who, ": ", e.what());
  }
}

}  // namespace

graph::Graph parse(std::span<const std::byte> bytes, const std::string &folder) {
  const Allowance memory(Limit::load_bytes);
  return parse_as(bytes, folder, "model");
}

graph::Graph load(const std::string &path) {
  const Allowance memory(Limit::load_bytes);
  const InputFile file(path);
  try {
    Allowance::take(static_cast<std::size_t>(file.size()));
  } catch (const Error &e) {
    fail(e.status(), path, ": ", e.what());
  }
  std::vector<char> bytes(static_cast<std::size_t>(file.size()));
  file.read(bytes.data(), 0, bytes.size());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return parse_as(std::as_bytes(std::span(bytes)), folder.empty() ? "." : folder, path);
}

}  // namespace qtn::onnx
