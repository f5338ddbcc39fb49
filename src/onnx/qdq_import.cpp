// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "graph/budget.hpp"
#include "graph/edges.hpp"
#include "onnx/qdq.hpp"
#include "ops/common/linear_grid.hpp"
#include "ops/common/positive_scales.hpp"

namespace qtn::onnx {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using ops::kDequantizeLinear;
using ops::kQuantizeLinear;

namespace {

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

template <class... Parts>
[[noreturn]] void refuse(qstatus status, const Node &node, const Parts &...parts) {
  fail(status, "node \"", node.name, "\" (", node.op->name, "): ", parts...);
}

class QdqImporter {
 public:
  QdqImporter(graph::Graph &g, Numerics numerics)
      : g_(g), uses_(g), numerics_(numerics), budget_(graph::constant_bytes(g)) {
    alias_.resize(g.values.size());
    for (std::size_t v = 0; v < alias_.size(); ++v) alias_[v] = static_cast<ValueId>(v);
    renamed_.resize(g.values.size(), false);
    seen_.resize(g.values.size(), false);
    done_.resize(g.nodes.size(), false);
    identities_.resize(g.nodes.size());
  }

  void run() {
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      if (done_[n]) continue;
      if (g_.nodes[n].op == &kQuantizeLinear) quantize(n);
      if (g_.nodes[n].op == &kDequantizeLinear) dequantize_constant(n);
    }
    rebuild();
    graph::extend_grids(g_, numerics_);
  }

 private:
  const Tensor *constant_of(ValueId v) const {
    return v != kNoValue && g_.value(v).is_constant() ? &g_.value(v).constant : nullptr;
  }

  static ValueId input(const Node &node, std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }

  /// The quantizer that a node's scale, zero point and axis describe; nullptr where they describe more than a quantizer
  /// can. `dtype` is what follows without a zero point; `shape` is that of a constant being (de)quantized, nullptr for
  /// activations, which are quantized per tensor only.
  QuantizerPtr quantizer_of(const Node &node, qdtype dtype, const Shape *shape) const {
    const Tensor *given_scale = constant_of(input(node, 1));
    const ValueId zero_id = input(node, 2);
    const Tensor *given_zero = constant_of(zero_id);
    if (!given_scale || (zero_id != kNoValue && !given_zero)) return nullptr;
    // What a DequantizeLinear node has made of a constant is on a grid since.
    const Tensor scale = ops::reals_of(*given_scale), zero = given_zero ? ops::reals_of(*given_zero) : Tensor();
    if (scale.dtype() != QTN_FLOAT32)
      refuse(QTN_EFORMAT, node, "its scale is ", dtype_name(scale.dtype()), ", not float32");
    if (!shape && (scale.count() != 1 || node.attrs.get_int("block_size", 0) != 0)) return nullptr;
    if (given_zero) dtype = zero.dtype();
    if (!is_quantizable(dtype))
      refuse(QTN_EUNSUPPORTED, node, "quantizes to ", dtype_name(dtype), ", which is not supported");
    try {
      return ops::linear_quantizer(node.op->name, node.attrs, shape ? *shape : Shape{}, scale,
                                   given_zero ? &zero : nullptr, dtype, numerics_);
    } catch (const Error &e) {
      refuse(e.status() == QTN_ESHAPE ? QTN_ESHAPE : QTN_EFORMAT, node, e.what());
    }
  }

  static qdtype default_dtype(const Node &node) {
    const std::int64_t dtype = node.attrs.get_int("output_dtype", 0);
    return dtype > 0 && dtype < 64 ? static_cast<qdtype>(dtype) : QTN_UINT8;
  }

  void dequantize_constant(std::size_t n) {
    const Node &node = g_.nodes[n];
    const Tensor *integers = constant_of(node.inputs[0]);
    const bool is_plain = integers && !integers->quantized();
    if (is_plain && has_other_scales(node)) return dequantize_other(n, *integers);
    const QuantizerPtr q = is_plain ? quantizer_of(node, integers->dtype(), &integers->shape()) : nullptr;
    if (!q) return;
    if (q->dtype() != integers->dtype())
      refuse(QTN_EFORMAT, node, "its input is ", dtype_name(integers->dtype()), ", its zero point ",
             dtype_name(q->dtype()));
    graph::Value &value = g_.value(node.outputs[0]);
    value.dtype = QTN_FLOAT32;
    value.shape = integers->shape();
    value.quantizer = q;
    value.constant = integers->with_quantizer(q);
    value.origin = g_.value(node.inputs[0]).name;
    done_[n] = true;
  }

  /// Scales that a constant's quantizer does not have, which ONNX allows, and ONNX Runtime's quantizers of blocks write.
  bool has_other_scales(const Node &node) const {
    const Tensor *given = constant_of(input(node, 1));
    const ValueId zero = input(node, 2);
    if (!given || (zero != kNoValue && !constant_of(zero))) return false;
    const Tensor scale = ops::reals_of(*given);
    return scale.dtype() == QTN_FLOAT32 && !ops::are_positive(scale);
  }

  void dequantize_other(std::size_t n, const Tensor &integers) {
    const Node &node = g_.nodes[n];
    const Tensor scale = ops::reals_of(g_.value(node.inputs[1]).constant), *zero = constant_of(input(node, 2));
    const Tensor *operands[] = {&integers, &scale, zero};
    if (!budget_.take(integers.nbytes()))  // nodes may share them, but not what becomes of them
      refuse(QTN_EUNSUPPORTED, node, "constants take too much memory to dequantize");
    try {
      ops::infer_op(*node.op, {node.attrs, operands, 1});
      graph::Value &value = g_.value(node.outputs[0]);
      value.constant = ops::on_linear_grid(node.op->name, node.attrs, integers, scale, zero, numerics_);
      value.dtype = QTN_FLOAT32;
      value.shape = integers.shape();
      value.quantizer = value.constant.quantizer();
      value.origin = g_.value(node.inputs[0]).name;
    } catch (const Error &e) {
      refuse(e.status() == QTN_ESHAPE ? QTN_ESHAPE : QTN_EFORMAT, node, e.what());
    }
    done_[n] = true;
  }

  void quantize_constant(std::size_t n, const Tensor &x) {
    const Node &node = g_.nodes[n];
    if (!x.quantized() && x.dtype() != QTN_FLOAT32)
      refuse(QTN_EFORMAT, node, "its input is ", dtype_name(x.dtype()), ", not float32");
    const QuantizerPtr q = quantizer_of(node, default_dtype(node), &x.shape());
    if (!q) return;
    if (!budget_.take(storage_nbytes(QTN_FLOAT32, x.count())))
      refuse(QTN_EUNSUPPORTED, node, "constants take too much memory to quantize");
    graph::Value &value = g_.value(node.outputs[0]);
    value.dtype = q->dtype();
    value.shape = x.shape();
    value.constant = qtn::quantize(ops::reals_of(x), q).with_quantizer(nullptr);
    done_[n] = true;
  }

  /// QuantizeLinear nodes of one value with one quantizer, and the values behind their DequantizeLinear nodes.
  struct Group {
    QuantizerPtr quantizer;
    std::vector<ValueId> outputs;
  };
  /// Where the group of a grid is in their list.
  using Groups = std::map<std::tuple<qdtype, qscheme, std::int32_t, double, std::int64_t>, std::size_t>;

  /// The quantizer of QuantizeLinear node n where all that read its integers are DequantizeLinear nodes that undo it.
  QuantizerPtr undone_quantizer(std::size_t n) const {
    const Node &node = g_.nodes[n];
    const ValueId integers = node.outputs[0];
    const QuantizerPtr q = quantizer_of(node, default_dtype(node), nullptr);
    if (!q || uses_.is_output[at(integers)]) return nullptr;
    for (const std::int32_t reader : uses_.consumers[at(integers)]) {
      const Node &dq = g_.nodes[at(reader)];
      if (dq.op != &kDequantizeLinear || dq.inputs[0] != integers) return nullptr;
      const QuantizerPtr back = has_other_scales(dq) ? nullptr : quantizer_of(dq, q->dtype(), nullptr);
      if (!back || !(*back == *q)) return nullptr;
    }
    return q;
  }

  /// Notes the DequantizeLinear nodes behind QuantizeLinear node n, whose quantizer is q.
  void collect(std::size_t n, const QuantizerPtr &q, std::vector<Group> &list, Groups &groups) {
    done_[n] = true;
    for (const std::int32_t reader : uses_.consumers[at(g_.nodes[n].outputs[0])]) {
      // Quantizers here have one scale.
      const auto [place, is_new] =
          groups.try_emplace({q->dtype(), q->scheme(), q->axis(), q->scales()[0], q->zero_points()[0]}, groups.size());
      if (is_new) list.push_back({q, {}});
      list[place->second].outputs.push_back(g_.nodes[at(reader)].outputs[0]);
      done_[at(reader)] = true;
    }
  }

  void quantize(std::size_t n) {
    const ValueId x = g_.nodes[n].inputs[0];
    if (const Tensor *constant = constant_of(x)) return quantize_constant(n, *constant);
    if (const std::int32_t maker = uses_.producer[at(x)]; maker >= 0 && g_.nodes[at(maker)].op == &kQuantizeLinear)
      refuse(QTN_EFORMAT, g_.nodes[n], "its input is integers, which node \"", g_.nodes[at(maker)].name,
             "\" makes, not float32");
    // All QuantizeLinear nodes of x at once: whether x itself may become quantized depends on all of its readers.
    std::vector<Group> groups;
    Groups places;
    bool read_as_float = uses_.is_output[at(x)] || seen_[at(x)];
    // A node that could not be taken with the others is looked at alone, when its turn comes.
    const std::vector<std::int32_t> alone{static_cast<std::int32_t>(n)};
    for (const std::int32_t reader : seen_[at(x)] ? alone : uses_.consumers[at(x)]) {
      const Node &node = g_.nodes[at(reader)];
      if (done_[at(reader)]) continue;
      const QuantizerPtr q =
          node.op == &kQuantizeLinear && node.inputs[0] == x ? undone_quantizer(at(reader)) : nullptr;
      if (q)
        collect(at(reader), q, groups, places);
      else
        read_as_float = true;
    }
    seen_[at(x)] = true;
    const ValueId base = alias_[at(x)];
    const bool may_carry = !read_as_float && groups.size() == 1 && !g_.value(base).quantizer;
    for (const Group &group : groups) {
      if (may_carry) set_quantizer(base, group.quantizer);
      attach(n, base, group);
    }
  }

  /// Lets the readers behind DequantizeLinear read a value that carries the group's quantizer: `base` or a copy of it.
  void attach(std::size_t n, ValueId base, const Group &group) {
    std::vector<ValueId> outputs = group.outputs;
    std::stable_partition(outputs.begin(), outputs.end(), [&](ValueId v) { return uses_.is_output[at(v)]; });
    ValueId target = base;
    auto next = outputs.begin();
    const QuantizerPtr &carried = g_.value(base).quantizer;
    if (!carried || !(*carried == *group.quantizer)) {
      target = *next++;
      copy(n, base, target, group.quantizer);
    }
    for (; next != outputs.end(); ++next) {
      if (uses_.is_output[at(*next)] && !take_name(target, *next)) {
        copy(n, target, *next, group.quantizer);
        continue;
      }
      alias_[at(*next)] = target;
    }
  }

  void set_quantizer(ValueId v, const QuantizerPtr &q) {
    g_.value(v).quantizer = q;
    g_.value(v).dtype = QTN_FLOAT32;
  }

  /// A value of its own for the quantized form of `from`, so that others see `from` as it is.
  void copy(std::size_t n, ValueId from, ValueId to, const QuantizerPtr &q) {
    set_quantizer(to, q);
    identities_[n].push_back({from, to});
  }

  /// A graph output keeps its name: the value that stands for it takes the name over, unless its own must stay as well.
  bool take_name(ValueId v, ValueId output) {
    const bool is_input = uses_.producer[at(v)] < 0;
    if (is_input || uses_.is_output[at(v)] || renamed_[at(v)]) return false;
    std::swap(g_.value(v).name, g_.value(output).name);
    if (!g_.value(v).shape) g_.value(v).shape = g_.value(output).shape;
    renamed_[at(v)] = true;
    return true;
  }

  void rebuild() {
    const ops::OpDef *identity = ops::find_op("Identity");
    std::vector<Node> nodes;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      std::size_t copies = 0;
      for (const auto &[from, to] : identities_[n]) {
        Node node;
        node.name = g_.nodes[n].name + (copies ? "_" + std::to_string(copies) : "");
        ++copies;
        node.op = identity;
        node.inputs = {from};
        node.outputs = {to};
        nodes.push_back(std::move(node));
      }
      if (!done_[n]) nodes.push_back(std::move(g_.nodes[n]));
    }
    g_.nodes = std::move(nodes);
    for (Node &node : g_.nodes)
      for (ValueId &v : node.inputs)
        if (v != kNoValue) v = alias_[at(v)];
    for (ValueId &v : g_.outputs) v = alias_[at(v)];
  }

  graph::Graph &g_;
  graph::Uses uses_;
  Numerics numerics_;
  graph::FoldBudget budget_;
  std::vector<ValueId> alias_;  ///< by value id: what readers of the value read instead
  std::vector<bool> renamed_, done_, seen_;
  std::vector<std::vector<std::pair<ValueId, ValueId>>> identities_;  ///< by node index: copies made in its place
};

}  // namespace

void import_qdq(graph::Graph &g, Numerics numerics) { QdqImporter(g, numerics).run(); }

}  // namespace qtn::onnx
