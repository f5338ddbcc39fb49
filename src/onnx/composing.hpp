// SPDX-License-Identifier: Apache-2.0
// What the rules of composed.hpp read of a graph and add to it.
#pragma once

#include <functional>
#include <initializer_list>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/error.hpp"
#include "graph/unique_names.hpp"
#include "onnx/messages.hpp"
#include "onnx/tensor_proto.hpp"

namespace qtn::onnx {

using Names = std::vector<std::string>;

/// A sequence of tensors that is known when the graph is read.
struct Sequence {
  Names items;
  // Or the parts of `whole` along an axis, of which there may be any number.
  std::string whole = {};
  std::int64_t axis = 0, length = 1;
  bool keeps_axis = true;
  std::string lengths = {};         ///< of the parts, where they are known at run time only
  std::optional<Shape> shape = {};  ///< of every item, where it is known
  // Or items of which only runs know the number and the shapes: see packed_sequences.hpp.
  std::string table = {};
  std::int64_t type = QTN_FLOAT32;  ///< of items, where there are none
};

/// An initializer, the attribute of a node Constant, or what a node makes of such, of which it moves or casts elements.
struct Given {
  protozero::data_view bytes;
  std::optional<AttributeProto> attribute = {};
  mutable std::optional<TensorHead> head = {};  ///< once it was asked for
  std::shared_ptr<const NodeProto> mover = {};
  std::vector<const Given *> moved = {};    ///< inputs of the mover, of its scope and those around
  int moves = 0;                            ///< that lie behind it
  mutable std::optional<Tensor> made = {};  ///< by the mover, where that has many elements
};

/// What is known of the values of a graph, and of those around it.
struct Scope {
  const Scope *outer = nullptr;
  std::unordered_map<std::string, Given> givens;
  std::unordered_map<std::string, const ValueInfo *> infos;
  std::unordered_map<std::string, Shape> shapes;  ///< in which the branches of an If agree
  std::unordered_map<std::string, bool> joined;   ///< made by a Concat, thus no numbers
  std::unordered_map<std::string, Sequence> sequences;
  std::unordered_map<std::string, Sequence> carried;  ///< into the body of the loop that is read next, by its inputs
  std::unordered_map<std::string, bool> options;      ///< values of type optional, and whether they hold something
  std::vector<std::shared_ptr<const GraphProto>> inlined;  ///< graphs to which infos belong
};

/// A tensor with those that it was made of, which keep their places as long.
struct MadeTensor {
  std::vector<Tensor> of;
  Tensor tensor;
};

/// What has been made of a file, and read of it for that.
struct Made {
  std::size_t file_bytes;
  std::size_t items = 0;     ///< of all sequences
  std::size_t nodes = 0;     ///< in the place of others
  std::size_t unrolled = 0;  ///< nodes of loops
  std::size_t bytes = 0;
  std::unordered_map<const char *, Tensor> read = {};        ///< by place in the file
  std::unordered_map<std::string, MadeTensor> tensors = {};  ///< by what they are
  std::unordered_set<const void *> counted = {};             ///< where elements are that are in `bytes` or in the file
};

/// Adds a node to the graph, or what it is read as.
using Visit = std::function<void(NodeProto)>;

/// One node on its way to others.
class Composing {
 public:
  Composing(const NodeProto &node, Scope &scope, std::vector<NodeProto> &nodes, graph::UniqueNames &names, Made &made,
            std::int64_t opset, const DataFolder &folder, const Visit &visit)
      : node_(node),
        scope_(scope),
        nodes_(nodes),
        names_(names),
        made_(made),
        opset_(opset),
        folder_(folder),
        visit_(visit) {}
  /// The same node on its way into a graph of its own.
  Composing(const Composing &other, std::vector<NodeProto> &nodes)
      : Composing(other.node_, other.scope_, nodes, other.names_, other.made_, other.opset_, other.folder_,
                  other.visit_) {}
  /// The same node as seen from within one of its graphs.
  Composing(const Composing &other, Scope &inner)
      : Composing(other.node_, inner, other.nodes_, other.names_, other.made_, other.opset_, other.folder_,
                  other.visit_) {}

  const NodeProto &node() const { return node_; }
  Scope &scope() { return scope_; }
  std::int64_t opset() const { return opset_; }
  Attrs attrs() const;  ///< without graphs
  std::shared_ptr<const GraphProto> graph(const char *name) const;
  const DataFolder &folder() const { return folder_; }
  Made &made() { return made_; }

  /// The name of an input; "" where it is absent.
  std::string in(std::size_t i) const { return i < node_.inputs.size() ? node_.inputs[i] : ""; }
  std::string out(std::size_t i) const { return i < node_.outputs.size() ? node_.outputs[i] : ""; }

  /// Bytes that may still be made of a file of this size.
  std::size_t bytes_left() const;

  std::optional<Tensor> constant(const std::string &name) const;
  /// A constant of one integer. No other is read, however many nodes ask for it.
  std::optional<std::int64_t> number(const std::string &name) const;
  std::optional<Shape> shape(const std::string &name) const;  ///< of a constant, or as the file says; -1: not known
  std::int32_t type(const std::string &name) const;           ///< onnx.TensorProto.DataType, 0: not known
  bool is_joined(const std::string &name) const;
  const Sequence *sequence(const std::string &name) const;
  std::optional<bool> option(const std::string &name) const;

  /// A new node; names of its outputs are made up where `outputs` has none.
  Names add(const char *op, Names inputs, const Attrs &attrs, Names outputs, const char *domain = "");
  std::string one(const char *op, Names inputs, const Attrs &attrs = {}, std::string output = "");
  // Each form is a function of its own: what a call leaves out costs it nothing.
  std::string one(const char *op, std::initializer_list<std::string_view> inputs);
  std::string one(const char *op, std::initializer_list<std::string_view> inputs, const std::string &output);
  std::string one(const char *op, std::initializer_list<std::string_view> inputs, const Attrs &attrs);
  std::string one(const char *op, std::initializer_list<std::string_view> inputs, const Attrs &attrs,
                  std::string output);
  /// Nodes from a text: operators with operands and attributes, which are parted by blanks. Operands are a, b and so on of
  /// `given`, A, B and so on that were made, numbers, and lists of them, in which `end` is behind everything. Returns what
  /// the last one makes.
  std::string formula(std::string_view text, std::initializer_list<std::string_view> given,
                      const std::string &output = "");
  std::string make(Tensor value);
  std::string make(Tensor value, std::string output);
  /// A tensor that nodes make again and again of the same constants, and of what the text says.
  Tensor once(std::string text, std::vector<Tensor> of, const std::function<Tensor()> &make);
  /// An initializer.
  Tensor read(protozero::data_view bytes) const { return *value({bytes}); }
  std::string make_ints(std::initializer_list<std::int64_t> values);
  std::string make_ints(const std::vector<std::int64_t> &values);
  std::string make_int(std::int64_t value, std::string output = "");
  std::string make_bool(bool value, std::string output);

  /// A number of the type of a value.
  std::string number_like(float value, const std::string &like);

  void visit(NodeProto node) { visit_(std::move(node)); }
  /// The sequence that the node makes.
  void keep(Sequence sequence);
  std::string new_name(const std::string &wanted) { return names_.make(node_.name + "/" + wanted); }

  /// The message begins with the node.
  template <class... Parts>
  [[noreturn]] void refuse(const Parts &...parts) const {
    fail(QTN_EUNSUPPORTED, parts...);
  }

 private:
  const Given *given(const std::string &name) const;
  std::optional<Tensor> value(const Given &given) const;
  std::optional<Tensor> moved(const Given &given, bool wants_many) const;
  void count(const Tensor &t) const;
  /// nullptr: it is no constant that is a tensor.
  const TensorHead *head(const Given *given) const;

  const NodeProto &node_;
  Scope &scope_;
  std::vector<NodeProto> &nodes_;
  graph::UniqueNames &names_;
  Made &made_;
  std::int64_t opset_;
  const DataFolder &folder_;
  const Visit &visit_;
};

/// In whose form new nodes are: the one that nodes are kept in.
constexpr std::int64_t kOpsetOfNew = 21;

/// A Loop that changes sequences, and whose iterations the file counts, as the nodes of its iterations.
bool unroll(Composing &c);

/// Notes what a node gives before any run.
void note_given(const NodeProto &node, Scope &scope, std::int64_t opset);

/// An attribute of integers as a tensor.
std::optional<Tensor> tensor_of(const Attr &value);

/// An attribute as a file holds it, whose floats are float32.
Attr in_file(Attr value);

/// Attributes by name and value, one after the other.
Attrs with(const char *name, Attr value);
template <class... More>
Attrs with(const char *name, Attr value, More &&...more) {
  Attrs attrs = with(std::forward<More>(more)...);
  attrs.set(name, in_file(std::move(value)));
  return attrs;
}

/// The attributes but these.
Attrs without(Attrs attrs, std::initializer_list<const char *> names);

/// x [n, ..., channels] as [n, channels, ...], and the other way round.
std::string channels_first(Composing &c, const std::string &x, std::size_t rank);
std::string channels_last(Composing &c, const std::string &x, std::size_t rank, std::string output);

/// The axes of images that such weights fit.
std::size_t rank_of_images(Composing &c, const std::string &weights);

/// A Scan or Loop of today by a graph.
NodeProto node_with_body(const char *op, std::string name, Names inputs, Names outputs,
                         std::shared_ptr<GraphProto> body, const Attrs &attrs);

using Renamed = std::unordered_map<std::string, std::string>;

/// The initializers of a graph as constants of the one around it, and their names there.
Renamed initializers_of(Composing &c, const GraphProto &graph);

/// Visits the nodes of a graph, whose inputs and initializers are called here as `names` says. Returns its outputs.
Names inlined(Composing &c, const std::shared_ptr<const GraphProto> &graph, Renamed names);

/// A tensor as input or output of a graph; with a type, one number of it.
ValueInfo tensor_named(std::string name, std::int32_t type = 0);

/// The same value under another name.
NodeProto identity(std::string from, std::string to);

/// x with its first axis at another place, whatever its rank.
std::string move_first_axis(Composing &c, const std::string &x, std::int64_t axis, const std::string &output);

/// A way to say a node otherwise. False, and nothing added: it stays.
struct ComposedRule {
  const char *domain, *op;
  bool (*rewrite)(Composing &);
  std::int64_t before = std::numeric_limits<std::int64_t>::max();  ///< for nodes of older opsets than this
};

extern const std::vector<ComposedRule> kSequenceRules, kLoopRules, kFusedRules, kOptimizedRules, kAttentionRules,
    kRecurrentRules, kOldestRules, kExperimentalRules, kHybridRules;

}  // namespace qtn::onnx
