// SPDX-License-Identifier: Apache-2.0
// A model as a graph: values (edges) and nodes in topological order, in ONNX's terms and NCHW shapes.
//
// Quantization is a property of a value. A value that carries a quantizer holds integers of that grid: a node that
// reads it sees dequantize(quantize(x)). So a graph that was quantized here has no QuantizeLinear or DequantizeLinear
// nodes; ONNX export writes them, import turns them back into quantizers, and sessions convert wherever a float node
// touches a quantized value. Such nodes stay only where a file does arithmetic on their plain integers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/custom.hpp"

namespace qtn::graph {

using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;  ///< an absent optional input

struct Value {
  std::string name;
  std::optional<qdtype> dtype;  ///< of the real values (float32), also where a quantizer is set
  std::optional<Shape> shape;   ///< as the file says; -1: unknown or symbolic
  Tensor constant;              ///< has_data(): an initializer; integers with a quantizer where quantized
  QuantizerPtr quantizer;       ///< of an activation or a constant
  std::string origin;           ///< of a constant made of another one: that one's name, or "" where names tell
  std::vector<std::string> symbols = {};  ///< of open dimensions, as the file says; "" or none at all
  std::optional<qdtype> file_dtype = {};  ///< of a constant that the file has in float16 or bfloat16

  bool is_constant() const { return constant.has_data(); }
};

struct Graph;
struct Unfused;

struct Node {
  std::string name;  ///< never empty, unique
  ops::OpPtr op;
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::optional<ops::Clamp> clamp;  ///< Relu or Clip fused onto output 0
  /// What it was before a normalization was folded into it by name: a training begins there. No file holds it.
  std::shared_ptr<const Unfused> unfused = {};
  /// The graphs that If (then, else), Loop and Scan run. Their last inputs, `captured` of them, are the node's last
  /// inputs: values of the graph around that they read.
  std::vector<std::shared_ptr<const Graph>> bodies = {};
  std::size_t captured = 0;
};

/// A product and the normalization behind it, with the constants that they read: those of `product` first.
struct Unfused {
  Node product, norm;
  std::vector<Value> constants;
  Value between;
  Tensor weight, bias;  ///< what became of these: a node that holds others is what a pass made of it
};

/// Which value has a name, so that to find names that are free takes no look at all of them. Made again for a copy of
/// the graph, and where values are renumbered. A pass that renames a value which it knows calls forget().
class ValueNames {
 public:
  ValueNames() = default;
  ValueNames(const ValueNames &) {}
  ValueNames(ValueNames &&) = default;
  ValueNames &operator=(const ValueNames &) { return forget(), *this; }
  ValueNames &operator=(ValueNames &&) = default;

  /// The value of this name, kNoValue where there is none.
  ValueId find(const std::vector<Value> &values, const std::string &name);
  /// `wanted`, or `wanted` with the first free number behind it.
  std::string make(const std::vector<Value> &values, const std::string &wanted);
  void forget();

 private:
  std::size_t seen_ = 0;  ///< values that are in `ids_`
  std::unordered_map<std::string, ValueId> ids_;
  std::unordered_map<std::string, std::size_t> last_;  ///< number that was given to a wanted name
};

struct Graph {
  Graph();
  Graph(const Graph &);
  Graph(Graph &&) noexcept;
  Graph &operator=(const Graph &);
  Graph &operator=(Graph &&) noexcept;
  ~Graph();

  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< every input of a node is a graph input, a constant, or an output of an earlier node
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  ValueNames names;
  std::map<std::string, std::int64_t> opsets = {};  ///< domain -> version in the file, of registered operators

  ValueId add_value(Value value);
  ValueId add_constant(const std::string &name, Tensor tensor);  ///< the name is made unique

  const Value &value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  Value &value(ValueId id) { return values[static_cast<std::size_t>(id)]; }
};

/// Which nodes make and read each value.
struct Uses {
  explicit Uses(const Graph &g);
  std::vector<std::int32_t> producer;                ///< node index, -1: graph input or constant
  std::vector<std::vector<std::int32_t>> consumers;  ///< node indexes, one entry for each input slot
  std::vector<bool> is_output;

  /// Read by exactly one node slot and not a graph output.
  bool single_use(ValueId v) const {
    return consumers[static_cast<std::size_t>(v)].size() == 1 && !is_output[static_cast<std::size_t>(v)];
  }
};

/// Orders nodes so that each follows what it reads. Throws QTN_EFORMAT naming a node on a cycle, or an input that
/// nothing makes.
void sort_topologically(Graph &g);

/// Drops nodes whose outputs are not read, and values that are not named (ids change).
void remove_dead(Graph &g);

/// Types of all values for the given input types: element i belongs to value id i. Constants that follow from shapes
/// alone, or from inputs whose `values` are given, are computed on the way and returned as constants. Throws QTN_ESHAPE
/// or QTN_EDTYPE naming the node, NotKnown where a shape depends on a value that is not there.
struct Inferred {
  std::vector<ops::TensorType> types;
  std::vector<Tensor> constants;  ///< has_data() where known
};
Inferred infer(const Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values = {});

/// The same as far as shapes are known before anything runs.
struct PartlyInferred {
  std::vector<std::optional<ops::TensorType>> types;
  std::vector<Tensor> constants;
  std::vector<std::size_t> stops;  ///< nodes whose inputs are known, and outputs not
  std::string why;                 ///< of the first of them
  bool misfits = false;            ///< with Misfit::stops: some refuse the shapes of their operands
};

/// All of it, where nothing stops; elsewhere throws NotKnown.
Inferred complete(PartlyInferred part);

/// Throws QTN_ESHAPE where strides or sizes of an input would wrap, as those of what no machine holds do. Open dimensions
/// count as 1.
void check_size(const Value &input, const Shape &shape);

/// What becomes of a node that refuses the shapes of its operands.
enum class Misfit { throws, stops };

PartlyInferred infer_partly(const Graph &g, std::span<const ops::TensorType> inputs,
                            std::span<const Tensor> values = {}, Misfit misfit = Misfit::throws);

/// The same for types alone, as a trial that nothing is run after: values are computed as far as shapes take them, not
/// where they are many.
PartlyInferred try_types(const Graph &g, std::span<const ops::TensorType> inputs, Misfit misfit = Misfit::throws);

/// Whether shapes may depend on the values of inputs: on short lists, such as sizes or scales.
bool may_say_shapes(const ops::TensorType &input);

/// For what an open batch stands where a graph does not take 1, since it views eight frames as a clip: a number that many
/// divide, and the usual ones.
inline constexpr std::int64_t kOtherBatches[] = {5040, 2,  3,  4,  5,  6,  7,  8,   9,   10,
                                                 12,   16, 20, 24, 32, 48, 64, 100, 128, 256};

/// Whether the inputs leave a dimension or a shape open.
bool has_open_dimension(const Graph &g);

/// The types of the graph's inputs, symbolic first dimensions set to `batch`; nullopt if another dimension is unknown.
std::optional<std::vector<ops::TensorType>> declared_input_types(const Graph &g, std::int64_t batch);

/// Throws QTN_ESHAPE or QTN_EDTYPE unless a tensor fits input i as declared (-1 fits anything). `who` begins the
/// message.
void check_input(const Graph &g, std::size_t i, qdtype dtype, const Shape &shape, const char *who);

}  // namespace qtn::graph
