// SPDX-License-Identifier: Apache-2.0
#include "onnx/composed.hpp"

#include <algorithm>

#include "onnx/file_budget.hpp"
#include "onnx/names.hpp"
#include "onnx/packed_sequences.hpp"
#include "onnx/tensor_proto.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {
namespace {

std::string_view domain_of(const NodeProto &node) {
  return node.domain == "ai.onnx" ? "" : std::string_view(node.domain);
}

/// `opset`: that of the file.
const ComposedRule *rule_of(const NodeProto &node, std::int64_t opset) {
  const std::string_view domain = domain_of(node);
  if (node.opset) opset = node.opset;
  for (const auto *rules : {&kSequenceRules, &kLoopRules, &kFusedRules, &kOptimizedRules, &kAttentionRules,
                            &kRecurrentRules, &kOldestRules, &kExperimentalRules, &kHybridRules})
    for (const ComposedRule &rule : *rules)
      if (opset < rule.before && node.op == rule.op && domain == rule.domain) return &rule;
  return nullptr;
}

}  // namespace

bool is_composed(const NodeProto &node) { return rule_of(node, 1) != nullptr; }

namespace {

bool has_any(const GraphProto &graph, std::int64_t opset) {
  return std::ranges::any_of(graph.nodes, [&](const NodeProto &node) {
    const bool composed = node.op != "Identity" && rule_of(node, opset);  // which is one of sequences only
    return composed || std::ranges::any_of(node.attributes, [&](const AttributeProto &attribute) {
             return attribute.graph && has_any(*attribute.graph, opset);
           });
  });
}

struct File {
  std::int64_t opset;
  const DataFolder &folder;
  graph::UniqueNames names;
  Made made;
};

/// Sequences are no values: where one is left, nothing makes it.
void refuse_sequences(const GraphProto &graph, const Scope &scope) {
  const auto is_sequence = [&](const std::string &name) { return !name.empty() && scope.sequences.contains(name); };
  for (const ValueInfo &output : graph.outputs)
    if (is_sequence(output.name))
      fail(QTN_EUNSUPPORTED, "output \"", output.name, "\" is a sequence, which is not supported");
  for (const NodeProto &node : graph.nodes)
    for (const std::string &name : node.inputs)
      if (is_sequence(name))
        fail(
            QTN_EUNSUPPORTED, "node \"", node.name, "\" (", node.op, "): reads the sequence \"", name,
            "\"; sequences are what ONNX's operators of sequences, If and Loop make and read, except where runs decide "
            "at which position an item is put in, or into how many parts a tensor is cut");
}

/// Whatever is wrong with a node is said with its name.
bool rewritten(const ComposedRule &rule, Composing &composing) {
  const NodeProto &node = composing.node();
  try {
    if (std::ranges::all_of(node.outputs, &std::string::empty)) fail(QTN_EFORMAT, "has no outputs");
    return rule.rewrite(composing);
  } catch (const Error &e) {
    fail(e.status(), "node \"", node.name, "\" (", node.op, "): ", e.what());
  }
}

/// Nothing is known of "", which says that there is no operand or that nobody reads the output.
template <class T>
const T *look_up(const Scope *scope, const std::string &name, std::unordered_map<std::string, T> Scope::*values) {
  for (; scope && !name.empty(); scope = scope->outer)
    if (const auto at = (scope->*values).find(name); at != (scope->*values).end()) return &at->second;
  return nullptr;
}

/// What is given where a node does no more than move, cast or count on elements of what is.
std::optional<Given> given_by(const NodeProto &node, const Scope &scope, std::int64_t opset) {
  constexpr std::string_view kMovers[] = {"Add", "Cast", "Identity", "Mul", "Neg", "Reshape", "Sub", "Transpose"};
  constexpr std::int64_t kFirstOpset = 7;  // before, some had other forms
  constexpr int kMostMoves = 4;
  if (opset < kFirstOpset || !domain_of(node).empty() || node.inputs.empty() || node.outputs.size() != 1 ||
      std::ranges::find(kMovers, node.op) == std::end(kMovers))
    return std::nullopt;
  Given given;
  for (const std::string &name : node.inputs) {
    const Given *from = look_up(&scope, name, &Scope::givens);
    if (!from || from->moves == kMostMoves) return std::nullopt;
    given.moved.push_back(from);
    given.moves = std::max(given.moves, from->moves + 1);
  }
  if (node.op == "Identity") return *given.moved[0];
  given.mover = std::make_shared<NodeProto>(node);
  return given;
}

/// Files may say others.
bool is_shape(std::span<const std::int64_t> dims) {
  return dims.size() <= kMaxRank && std::ranges::none_of(dims, [](std::int64_t dim) { return dim < 0; });
}

/// As few elements as positions, axes and shapes are.
bool is_small(std::span<const std::int64_t> dims) {
  constexpr std::int64_t kMostElements = 1 << 10;
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0 || dim > kMostElements || count * dim > kMostElements) return false;
    count *= dim;
  }
  return true;
}

/// The dimensions that both have; -1 for others.
std::optional<Shape> common_shape(const std::optional<Shape> &a, const std::optional<Shape> &b) {
  if (!a || !b || a->size() != b->size()) return std::nullopt;
  Shape common = *a;
  for (std::size_t i = 0; i < common.size(); ++i)
    if (common[i] != (*b)[i]) common[i] = -1;
  return common;
}

/// What is known of an output of a graph.
struct Result {
  std::optional<Shape> shape;
  bool is_sequence;
};
using Results = std::vector<Result>;

/// A graph on its way to one without composed nodes.
class Rewriting {
 public:
  Rewriting(File &file, Scope *outer) : file_(file) {
    scope_.outer = outer;
    if (outer) scope_.sequences.swap(outer->carried);
  }

  /// `packs`: whether sequences that are outputs become two of them.
  Results run(GraphProto &graph, bool packs) {
    for (const protozero::data_view initializer : graph.initializers) {
      TensorHead head = read_head(initializer);
      const std::string name = head.name;
      scope_.givens[name] = {initializer, {}, std::move(head)};
    }
    for (const auto *list : {&graph.inputs, &graph.values, &graph.outputs})
      for (const ValueInfo &info : *list) scope_.infos[info.name] = &info;
    for (const NodeProto &node : graph.nodes) note_given(node, scope_, file_.opset);
    for (NodeProto &node : graph.nodes) visit(std::move(node));
    const NodeProto none;
    Composing end = composing(none);
    Results results;
    std::vector<ValueInfo> outputs;  // those of the graph stay where they are, since infos lead there
    for (const ValueInfo &output : graph.outputs) {
      const Sequence *s = packs ? end.sequence(output.name) : nullptr;
      const std::optional<Sequence> pack = s ? packed(end, *s) : std::nullopt;
      results.push_back({end.shape(output.name), pack.has_value()});
      if (pack)
        push_packed(outputs,
                    packed_as(end.formula("Identity a", {pack->whole}), end.formula("Identity a", {pack->table})));
      else
        outputs.push_back(output);
    }
    graph.outputs = std::move(outputs);
    graph.nodes = std::move(nodes_);
    refuse_sequences(graph, scope_);
    return results;
  }

 private:
  Composing composing(const NodeProto &node) {
    return {node, scope_, nodes_, file_.names, file_.made, node.opset ? node.opset : file_.opset, file_.folder, visit_};
  }

  void visit(NodeProto node) {
    const ComposedRule *rule = rule_of(node, file_.opset);
    Composing composed = composing(node);
    if (rule && rewritten(*rule, composed)) return;
    rewrite_graphs(node);
    nodes_.push_back(std::move(node));
  }

  void rewrite_graphs(NodeProto &node) {
    const bool branches = node.op == "If", packs = branches || node.op == "Loop";
    std::vector<Results> inner;
    for (AttributeProto &attribute : node.attributes)
      if (attribute.graph) inner.push_back(Rewriting(file_, &scope_).run(*attribute.graph, packs));
    if (inner.empty()) return;
    if (branches && inner.size() == 2)
      for (std::size_t i = 0; i < std::min({node.outputs.size(), inner[0].size(), inner[1].size()}); ++i)
        if (const std::optional<Shape> shape = common_shape(inner[0][i].shape, inner[1][i].shape))
          scope_.shapes.insert({node.outputs[i], *shape});
    if (packs) take_sequences(node, inner, branches ? 0 : 1);
  }

  /// Outputs that are sequences come as two tensors. `first`: the output of a graph that is output 0 of the node.
  void take_sequences(NodeProto &node, const std::vector<Results> &inner, std::size_t first) {
    Names outputs;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto is_sequence = [&](const Results &results) {
        return i + first < results.size() && results[i + first].is_sequence;
      };
      if (!std::ranges::any_of(inner, is_sequence)) {
        outputs.push_back(node.outputs[i]);
        continue;
      }
      if (!std::ranges::all_of(inner, is_sequence))
        fail(QTN_EFORMAT, "node \"", node.name, "\" (", node.op, "): output ", i, " is a sequence in one graph only");
      outputs.push_back(file_.names.make(node.outputs[i] + "/items"));
      outputs.push_back(file_.names.make(node.outputs[i] + "/table"));
      scope_.sequences[node.outputs[i]] = packed_as(outputs.rbegin()[1], outputs.back());
    }
    node.outputs = std::move(outputs);
  }

  File &file_;
  Scope scope_;
  std::vector<NodeProto> nodes_;
  const Visit visit_ = [this](NodeProto node) {
    note_given(node, scope_, file_.opset);
    visit(std::move(node));
  };
};

/// Where the attribute is a tensor of the file.
std::optional<protozero::data_view> tensor_in(const AttributeProto &attribute) {
  if (attribute.made) return std::nullopt;
  protozero::pbf_reader message(attribute.bytes);
  return message.next(field::attribute::t, protozero::pbf_wire_type::length_delimited)
             ? std::optional(message.get_view())
             : std::nullopt;
}

Attrs attrs_of(const NodeProto &node, const DataFolder &folder) {
  Attrs attrs;
  for (const AttributeProto &attribute : node.attributes)
    if (!attribute.graph) attrs.set(attribute.name, read_attribute(attribute, folder));
  return attrs;
}

}  // namespace

void note_given(const NodeProto &node, Scope &scope, std::int64_t opset) {
  if (node.op == "Constant" && node.outputs.size() == 1 && node.attributes.size() == 1)
    scope.givens.insert({node.outputs[0], {{}, node.attributes[0]}});
  else if (node.op == "Concat" && node.outputs.size() == 1)
    scope.joined[node.outputs[0]] = true;
  else if (const std::optional<Given> given = given_by(node, scope, opset))
    scope.givens.insert({node.outputs[0], *given});
}

std::optional<Tensor> tensor_of(const Attr &value) {
  if (const auto *tensor = std::get_if<Tensor>(&value)) return *tensor;
  if (const auto *integer = std::get_if<std::int64_t>(&value))
    return Tensor::from<std::int64_t>(QTN_INT64, Shape{}, std::span(integer, 1));
  if (const auto *list = std::get_if<std::vector<std::int64_t>>(&value)) return Tensor::from_ints(*list);
  return std::nullopt;
}

Attr in_file(Attr value) {
  if (double *number = std::get_if<double>(&value)) *number = static_cast<float>(*number);
  return value;
}

Attrs with(const char *name, Attr value) {
  Attrs attrs;
  attrs.set(name, in_file(std::move(value)));
  return attrs;
}

Attrs without(Attrs attrs, std::initializer_list<const char *> names) {
  for (const char *name : names) attrs.erase(name);
  return attrs;
}

Attrs Composing::attrs() const { return attrs_of(node_, folder_); }

std::shared_ptr<const GraphProto> Composing::graph(const char *name) const {
  const auto at = std::ranges::find(node_.attributes, name, &AttributeProto::name);
  return at == node_.attributes.end() ? nullptr : at->graph;
}

const Given *Composing::given(const std::string &name) const { return look_up(&scope_, name, &Scope::givens); }

std::optional<Tensor> Composing::constant(const std::string &name) const {
  const Given *found = given(name);
  return found ? value(*found) : std::nullopt;
}

std::optional<Tensor> Composing::value(const Given &given) const {
  if (given.mover) {
    const std::optional<Tensor> t = moved(given, true);
    return t && t->has_data() ? t : std::nullopt;
  }
  const std::optional<protozero::data_view> bytes =
      given.attribute ? tensor_in(*given.attribute) : std::optional(given.bytes);
  if (bytes)
    if (const auto at = made_.read.find(bytes->data()); at != made_.read.end()) return at->second;
  const std::optional<Tensor> t = given.attribute ? tensor_of(read_attribute(*given.attribute, folder_))
                                                  : std::optional(read_tensor(given.bytes, folder_).second);
  if (!bytes || !t) return t;
  made_.counted.insert(t->data());
  return made_.read.emplace(bytes->data(), *t).first->second;
}

/// What a node makes; without elements where it or one of its inputs has many. `wants_many`: then also, if it moves them
/// only, as to the table of a first layer from that of the last one.
std::optional<Tensor> Composing::moved(const Given &given, bool wants_many) const {
  if (given.made) return given.made;
  const std::string &name = given.mover->op;
  const bool many = wants_many && (name == "Cast" || name == "Reshape" || name == "Transpose");
  std::vector<Tensor> inputs;
  std::vector<const Tensor *> operands;
  bool has_data = true;
  for (const Given *from : given.moved) {
    const TensorHead *of = head(from);
    if (!of || !is_stored(of->data_type) || !is_shape(of->dims)) return std::nullopt;
    const std::optional<Tensor> t = is_small(of->dims) || (many && inputs.empty()) ? value(*from) : std::nullopt;
    inputs.push_back(t ? *t : Tensor::meta(static_cast<qdtype>(of->data_type), Shape(std::span(of->dims))));
    has_data = has_data && t;
  }
  for (const Tensor &input : inputs) operands.push_back(&input);
  const Attrs attrs = attrs_of(*given.mover, folder_);
  const ops::OpDef &op = *ops::find_op(given.mover->op);
  const ops::Call call{attrs, operands};
  try {
    const ops::TensorType type = ops::infer_op(op, call)[0];
    if (has_data && is_small(type.shape)) return ops::run_op(op, call)[0];
    if (!has_data || !many || storage_nbytes(type.dtype, element_count(type.shape)) > bytes_left())
      return Tensor::meta(type.dtype, type.shape);
    given.made = ops::run_op(op, call)[0];
    count(*given.made);
    return given.made;
  } catch (const NotKnown &) {
    return std::nullopt;
  }
}

const TensorHead *Composing::head(const Given *given) const {
  if (!given) return nullptr;
  if (!given->head) {
    const std::optional<protozero::data_view> bytes = given->attribute ? tensor_in(*given->attribute) : std::nullopt;
    const std::optional<Tensor> t = bytes ? std::nullopt : given->mover ? moved(*given, false) : value(*given);
    if (bytes)
      given->head = read_head(*bytes);
    else if (t)
      given->head = {"", {t->shape().begin(), t->shape().end()}, t->dtype()};
    else
      return nullptr;
  }
  return &*given->head;
}

std::optional<std::int64_t> Composing::number(const std::string &name) const {
  const TensorHead *of = head(given(name));
  if (!of || std::ranges::any_of(of->dims, [](std::int64_t dim) { return dim != 1; })) return std::nullopt;
  const std::optional<Tensor> t = constant(name);
  return t && t->count() == 1 ? std::optional(int_values(*t, "position")[0]) : std::nullopt;
}

std::optional<Shape> Composing::shape(const std::string &name) const {
  if (const TensorHead *of = head(given(name))) return Shape(std::span<const std::int64_t>(of->dims));
  const auto *info = look_up(&scope_, name, &Scope::infos);
  const Shape *made = look_up(&scope_, name, &Scope::shapes);
  std::optional<Shape> said = info ? (*info)->shape : std::nullopt;
  if (!made) return said;
  if (!said || said->size() != made->size()) return *made;
  for (std::size_t i = 0; i < said->size(); ++i)
    if ((*said)[i] < 0) (*said)[i] = (*made)[i];
  return said;
}

std::int32_t Composing::type(const std::string &name) const {
  if (const auto *info = look_up(&scope_, name, &Scope::infos)) return (*info)->elem_type;
  const TensorHead *of = head(given(name));
  return of ? of->data_type : 0;
}

bool Composing::is_joined(const std::string &name) const { return look_up(&scope_, name, &Scope::joined) != nullptr; }

const Sequence *Composing::sequence(const std::string &name) const { return look_up(&scope_, name, &Scope::sequences); }

std::optional<bool> Composing::option(const std::string &name) const {
  const bool *holds = look_up(&scope_, name, &Scope::options);
  return holds ? std::optional(*holds) : std::nullopt;
}

Names Composing::add(const char *op, Names inputs, const Attrs &attrs, Names outputs, const char *domain) {
  constexpr std::size_t kMostNodes = 1 << 18;
  if (++made_.nodes > kMostNodes)
    fail(QTN_EUNSUPPORTED, "what nodes of the file are read as comes to more than ", kMostNodes, " nodes");
  NodeProto node;
  node.op = op;
  node.domain = domain;
  node.opset = kOpsetOfNew;
  const bool last = !outputs[0].empty() && outputs[0] == out(0);
  node.name = last ? node_.name : node_.name.empty() ? "" : node_.name + "/" + op;
  node.inputs = std::move(inputs);
  for (std::string &output : outputs)
    if (output.empty()) output = new_name(op);
  node.outputs = outputs;
  for (const auto &[name, value] : attrs) node.attributes.push_back({name, "", {}, nullptr, value});
  nodes_.push_back(std::move(node));
  return outputs;
}

std::string Composing::one(const char *op, Names inputs, const Attrs &attrs, std::string output) {
  return add(op, std::move(inputs), attrs, Names(1, std::move(output)))[0];
}

std::string Composing::one(const char *op, std::initializer_list<std::string_view> inputs) {
  return one(op, Names(inputs.begin(), inputs.end()));
}

std::string Composing::one(const char *op, std::initializer_list<std::string_view> inputs, const std::string &output) {
  return one(op, Names(inputs.begin(), inputs.end()), {}, output);
}

std::string Composing::one(const char *op, std::initializer_list<std::string_view> inputs, const Attrs &attrs) {
  return one(op, Names(inputs.begin(), inputs.end()), attrs);
}

std::string Composing::one(const char *op, std::initializer_list<std::string_view> inputs, const Attrs &attrs,
                           std::string output) {
  return one(op, Names(inputs.begin(), inputs.end()), attrs, std::move(output));
}

std::string Composing::make_ints(std::initializer_list<std::int64_t> values) {
  return make(Tensor::from_ints(std::vector<std::int64_t>(values)));
}

std::string Composing::make_ints(const std::vector<std::int64_t> &values) { return make(Tensor::from_ints(values)); }

std::string Composing::make_int(std::int64_t value, std::string output) {
  return make(Tensor::from<std::int64_t>(QTN_INT64, Shape{}, std::span(&value, 1)), std::move(output));
}

std::string Composing::make(Tensor value) { return make(std::move(value), ""); }

std::size_t Composing::bytes_left() const {
  Size all = made_.file_bytes;
  for (const auto &[file, bytes] : folder_.bytes_read) all = all + bytes;
  const std::size_t most = most_made_of(all.value());
  return most - std::min(most, made_.bytes);
}

/// Once for all that shares its elements.
void Composing::count(const Tensor &t) const {
  if (!made_.counted.insert(t.data()).second) return;
  if (const std::size_t bytes = t.nbytes(), left = bytes_left(); bytes > left)
    fail(QTN_ENOMEM, "what nodes are read as takes ", made_.bytes + bytes, " bytes, more than ", made_.bytes + left,
         " for a file of this size");
  made_.bytes += t.nbytes();
}

Tensor Composing::once(std::string text, std::vector<Tensor> of, const std::function<Tensor()> &make) {
  for (const Tensor &t : of)
    text += cat(" ", t.dtype(), " ", to_string(t.shape()), " ", reinterpret_cast<std::uintptr_t>(t.data()));
  if (const auto at = made_.tensors.find(text); at != made_.tensors.end()) return at->second.tensor;
  const Tensor made = make();
  made_.tensors.emplace(std::move(text), MadeTensor{std::move(of), made});
  return made;
}

std::string Composing::make(Tensor value, std::string output) {
  count(value);
  const std::string name = one("Constant", {}, with("value", std::move(value)), std::move(output));
  scope_.givens.insert({name, {{}, nodes_.back().attributes[0]}});
  return name;
}

void Composing::keep(Sequence sequence) {
  constexpr std::size_t kMostItems = 1 << 12, kMostOfFile = 1 << 20;
  const std::size_t count = sequence.items.size();
  if (std::ranges::find(sequence.items, "") != sequence.items.end()) fail(QTN_EFORMAT, "an item is absent");
  if (count > kMostItems) refuse("a sequence of ", count, " items is over the limit of ", kMostItems);
  if (made_.items + count > kMostOfFile)
    refuse("with it, sequences of the file hold ", made_.items + count, " items, over the limit of ", kMostOfFile);
  made_.items += count;
  scope_.sequences[out(0)] = std::move(sequence);
}

std::string Composing::make_bool(bool value, std::string output) {
  return make(Tensor::from<bool>(QTN_BOOL, Shape{}, std::span(&value, 1)), std::move(output));
}

std::string Composing::number_like(float value, const std::string &like) {
  const std::string number = make(Tensor::scalar(value));
  const std::int32_t dtype = type(like);
  return dtype == QTN_FLOAT32 || dtype == 0 ? number : one("CastLike", {number, like});
}

void rewrite_composed(GraphProto &graph, std::int64_t opset, const DataFolder &folder, std::size_t file_bytes) {
  if (!has_any(graph, opset)) return;
  File file{opset, folder, {}, {file_bytes}};
  take_names(graph, file.names);
  Rewriting(file, nullptr).run(graph, false);
}

}  // namespace qtn::onnx
