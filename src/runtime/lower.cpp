// SPDX-License-Identifier: Apache-2.0
// From graph to plan: binds each node to a kernel, in integers wherever its values hold them.
#include <algorithm>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "ops/common/requantization.hpp"
#include "runtime/lower_real.hpp"

namespace qtn::runtime {
namespace {

using graph::IntegerForm;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

class Lowering : RealLowering {
 public:
  using RealLowering::RealLowering;

  Plan build(std::span<const ValueId> watched) {
    std::vector<bool> tapped(g_.values.size(), false);
    for (const ValueId v : watched) tapped[at(v)] = known_.types[at(v)].dtype == QTN_FLOAT32;
    const auto tap = [&](const std::vector<ValueId> &values) {
      for (const ValueId v : values)
        if (v != kNoValue && tapped[at(v)]) add_step(make_tap(real(v), v));
    };
    const Attentions attentions = find_attentions(g_, known_, tapped);
    tap(g_.inputs);
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      node_ = &g_.nodes[n];
      node_index_ = n;
      const bool done = std::all_of(node_->outputs.begin(), node_->outputs.end(),
                                    [&](ValueId v) { return v == kNoValue || known_.constants[at(v)].has_data(); });
      const auto attention = attentions.formulas.find(n);
      if (attention != attentions.formulas.end())
        lower_attention(attention->second);
      else if (!done && !attentions.inside[n])
        lower_node();
      if (!attentions.inside[n]) tap(node_->outputs);
    }
    node_ = nullptr;
    for (const ValueId v : g_.outputs) plan_.outputs.push_back(outgoing(v));
    place_slots(plan_);
    return std::move(plan_);
  }

 private:
  void lower_node() {
    switch (graph::integer_form(g_, *node_)) {
      case IntegerForm::linear:
        return lower_linear();
      case IntegerForm::dynamic:
        return lower_dynamic();
      case IntegerForm::arithmetic:
        return lower_arithmetic();
      case IntegerForm::table:
        return lower_table();
      case IntegerForm::move:
        return lower_move();
      case IntegerForm::recurrent:
      case IntegerForm::none:
        break;
    }
    if (fits_matmul()) return lower_matmul();
    const QuantizerPtr weights = input(1) == kNoValue ? nullptr : g_.value(input(1)).quantizer;
    const bool weights_stay_integers =
        node_->op->run_quantized && is_8bit(input(0)) && weights && !weights->per_block();
    if (weights_stay_integers) return lower_definition();
    lower_float();
  }

  bool fits_matmul() const {
    if (node_->op != &ops::kMatMul || node_->clamp || !is_8bit(input(0)) || !is_8bit(input(1))) return false;
    const Shape &a = shape_of(input(0)), &b = shape_of(input(1));
    const QuantizerPtr &qy = g_.value(output()).quantizer;
    return a.size() >= 2 && b.size() >= 2 && a.back() <= graph::kDynamicDepth && element_count(a) != 0 &&
           element_count(b) != 0 && (!qy || is_8bit(output()));
  }

  void lower_matmul() {
    const ValueId y = output();
    const SlotId a = integer(input(0)), b = integer(input(1));
    const Shape &shape = shape_of(y);
    const SlotId to = is_8bit(y) ? integer_output(y, shape, contiguous_strides(shape)) : plain_slot(QTN_FLOAT32, shape);
    add_step(make_matmul(edge(a), edge(b), edge(to)));
    if (!is_8bit(y)) settle(y, to);
  }

  QuantizedRange range(const QuantizerPtr &q) const {
    return ops::output_range(*q, node_->clamp ? &*node_->clamp : nullptr);
  }

  void lower_linear() {
    if (node_->op == &ops::kConvTranspose) return lower_transposed();
    const bool conv = node_->op == &ops::kConv;
    const ValueId x = input(0), y = output();
    const QuantizerPtr qx = canonical(g_.value(x).quantizer);
    const QuantizerPtr qy = is_8bit(y) ? canonical(g_.value(y).quantizer) : nullptr;
    const LinearWeights w = linear_weights(g_, *node_, *qx, qy.get());
    ops::Window window;
    if (conv) window = over_pictures(ops::conv_window(node_->attrs, shape_of(x), shape_of(input(1))));
    if (!w.sums_fit || (conv && !is_ordinary(window))) return lower_definition();
    const SlotId xs = conv ? picture(integer(x)) : contiguous(integer(x));
    const Shape strides = conv ? channels_last_strides(shape_of(y)) : contiguous_strides(shape_of(y));
    const SlotId ys =
        qy ? integer_output(y, shape_of(y), strides) : add_slot({QTN_FLOAT32, shape_of(y), strides, nullptr});
    const QuantizedRange out = qy ? range(qy) : QuantizedRange{};
    if (!conv) {
      const std::size_t rows = w.k ? static_cast<std::size_t>(element_count(shape_of(x))) / w.k : 0;
      add_step(make_gemm(edge(xs), edge(ys), rows, w, out, clamp(), isa_, pack_cache()));
    } else {
      add_convolution(xs, ys, window, w, out, pack_cache());
    }
    if (!qy) settle(y, ys);
  }

  void add_convolution(SlotId x, SlotId y, const ops::Window &window, const LinearWeights &w, const QuantizedRange &out,
                       const PackCache &cache) {
    const bool depthwise = w.out == 1 && static_cast<std::int64_t>(w.groups) == form(x).shape[1];
    if (depthwise)
      add_step(make_depthwise(edge(x), edge(y), window, w, out, clamp(), isa_, cache));
    else
      add_step(make_conv(edge(x), edge(y), window, w, out, clamp(), isa_, cache));
  }

  /// A convolution for each phase of the outputs, whose results are interleaved.
  void lower_transposed() {
    const ValueId x = input(0), y = output();
    const ops::Window window = over_pictures(ops::transposed_window(node_->attrs, shape_of(x), shape_of(input(1))));
    const auto phases = phases_of(window);
    if (!phases) return lower_definition();
    const QuantizerPtr qx = canonical(g_.value(x).quantizer);
    const QuantizerPtr qy = is_8bit(y) ? canonical(g_.value(y).quantizer) : nullptr;
    const Shape &shape = shape_of(y), strides = channels_last_strides(shape);
    const auto residues = static_cast<std::size_t>(element_count(Shape(window.stride)));

    struct Product {
      std::span<const Phase> phases;
      Phase all;
      std::size_t part;
      LinearWeights weights;
    };
    std::vector<Product> products;
    const auto plan = [&](std::span<const Phase> some, const Phase &all, std::size_t part) {
      products.push_back({some, all, part, phase_weights(g_, *node_, some, all, *qx, qy.get())});
    };
    if (share_product(window, *phases, node_->attrs.get_int("group", 1), shape[1]))
      plan(*phases, joined(*phases), residues + phases->front().residue);
    else
      for (const Phase &phase : *phases) plan(std::span(&phase, 1), phase, phase.residue);
    for (const Product &p : products)
      if (!p.weights.sums_fit || !is_ordinary(p.all.window)) return lower_definition();

    const SlotId xs = picture(integer(x));
    const SlotId ys = qy ? integer_output(y, shape, strides) : add_slot({QTN_FLOAT32, shape, strides, nullptr});
    const QuantizedRange out = qy ? range(qy) : QuantizedRange{};
    for (const Product &p : products) {
      const bool whole = phases->size() == 1 && p.all.window.out == p.all.count;
      const std::int64_t channels = shape[1] * static_cast<std::int64_t>(p.phases.size());
      const Shape made = picture_shape(shape, channels, p.all.window.out);
      const SlotId to = whole ? ys : add_slot({form(ys).dtype, made, channels_last_strides(made), qy});
      add_convolution(xs, to, p.all.window, p.weights, out, pack_cache(p.part, 2 * residues));
      for (std::size_t i = 0; i < p.phases.size() && !whole; ++i)
        interleave(to, static_cast<std::ptrdiff_t>(i) * shape[1], p.all, ys, p.phases[i], window);
    }
    if (!qy) settle(y, ys);
  }

  void lower_dynamic() {
    const ValueId x = input(0), y = output();
    std::array<Tensor, 4> constants;
    for (std::size_t i = 0; i < constants.size(); ++i)
      if (input(i + 1) != kNoValue) constants[i] = g_.value(input(i + 1)).constant;
    const auto &[weight, scales, zero, bias] = constants;
    const DynamicOperand operand = on_own_grid(x, weight.dim(0));
    const DynamicProduct product{plain_slot(QTN_FLOAT32, shape_of(y)), plain_slot(QTN_FLOAT32, {weight.dim(1)}),
                                 plain_slot(QTN_INT32, {static_cast<std::int64_t>(operand.rows)})};
    add_step(make_dynamic_product(operand, product, {weight, scales, zero, bias}, node_->clamp, isa_, pack_cache()));
    settle(y, product.y);
  }

  /// Rows of k elements; made once for all nodes that read x.
  DynamicOperand on_own_grid(ValueId x, std::int64_t k) {
    const ops::OwnGrid grid = ops::own_grid(node_->op->name, node_->attrs);
    const auto [entry, is_new] = own_grids_.try_emplace({x, grid});
    if (is_new) {
      const std::int64_t rows = element_count(shape_of(x)) / k;
      entry->second = {real(x),
                       plain_slot(QTN_UINT8, shape_of(x)),
                       plain_slot(QTN_FLOAT32, {rows}),
                       plain_slot(QTN_INT32, {rows}),
                       static_cast<std::size_t>(rows),
                       static_cast<std::size_t>(k)};
      add_step(make_dynamic_quantize(node_->op->name, entry->second, grid, isa_));
    }
    return entry->second;
  }

  SlotId plain_slot(qdtype dtype, const Shape &shape) {
    return add_slot({dtype, shape, contiguous_strides(shape), nullptr});
  }

  void lower_arithmetic() {
    if (graph::has_quantized_run(*node_)) return lower_definition();
    const std::string_view op = node_->op->name;
    if (op == "Add" || op == "Sub" || op == "Mul") {
      const Binary kind = op == "Add" ? Binary::add : op == "Sub" ? Binary::sub : Binary::mul;
      const SlotId a = integer(input(0)), b = integer(input(1));
      if (lower_as_tail(a, b, kind)) return;
      const SlotId y = integer_output(output(), shape_of(output()), binary_strides(a, b));
      return add_step(make_binary(edge(a), edge(b), edge(y), kind, range(form(y).quantizer), isa_));
    }
    const Shape &x = shape_of(input(0));
    if (x.size() < 3 || x.size() > 5) return lower_definition();
    if (op == "AveragePool")
      return lower_pool(over_pictures(ops::pool_window("AveragePool", node_->attrs, x)), Pooling::average);
    if (op == "GlobalAveragePool" || (op == "ReduceMean" && reduces_pictures()))
      return lower_pool(whole_picture(x), Pooling::average);
    lower_definition();
  }

  /// a op b at the end of the step that computes the later one of them.
  bool lower_as_tail(SlotId a, SlotId b, Binary kind) {
    const Shape &shape = shape_of(output());
    const bool swapped = producer(b) > producer(a);
    const SlotId mine = swapped ? b : a, other = swapped ? a : b;
    if (form(a).shape != shape || form(b).shape != shape || producer(other) >= producer(mine)) return false;
    auto *step = dynamic_cast<TailedStep *>(open_step(input(swapped ? 1 : 0), mine));
    const auto row = step ? step->row_of(form(other).shape, form(other).strides) : std::nullopt;
    if (!row) return false;
    const SlotId y = integer_output(output(), shape, form(mine).strides);
    step->append(
        make_binary_tail(form(mine), edge(other), *row, form(y), kind, swapped, range(form(y).quantizer), isa_), y,
        node_->op->name);
    return true;
  }

  /// The output lies as the operand that is not broadcast.
  Shape binary_strides(SlotId a, SlotId b) const {
    const Shape &shape = shape_of(output());
    for (const SlotId s : {a, b})
      if (form(s).shape == shape && is_dense(form(s))) return form(s).strides;
    return integer_strides(shape);
  }

  void lower_pool(const ops::Window &window, Pooling pooling) {
    const ValueId v = output();
    if (!is_ordinary(window) || !pools_in_int32(window)) return lower_definition();
    const SlotId x = picture(integer(input(0)));
    // ReduceMean may drop the axes that its pooled picture keeps with length 1.
    const Shape shape = picture_shape(shape_of(input(0)), shape_of(input(0))[1], window.out);
    const SlotId y = integer_output(v, shape, channels_last_strides(shape));
    add_step(make_pool(edge(x), edge(y), window, pooling, node_->attrs.get_int("count_include_pad", 0) != 0,
                       range(form(y).quantizer), isa_));
    if (shape != shape_of(v)) integer_[at(v)] = add_view(y, {shape_of(v), contiguous_strides(shape_of(v)), 0});
  }

  /// Whether int32 holds the sum of a window; of so many taps pointers alone would fill the cache.
  static bool pools_in_int32(const ops::Window &window) {
    std::int64_t left = std::numeric_limits<std::int32_t>::max() / 255;
    for (std::size_t axis = 0; axis < 3; ++axis)
      left /= std::max<std::int64_t>(1, std::min(window.kernel[axis], window.in[axis]));
    return left > 0;
  }

  void lower_table() {
    std::size_t operand = 0;
    while (!is_8bit(input(operand)) || g_.value(input(operand)).is_constant()) ++operand;
    const ValueId v = output();
    const SlotId x = dense(integer(input(operand)));
    std::vector<Tensor> operands;
    for (const ValueId id : node_->inputs) {
      if (id == kNoValue || !known_.constants[at(id)].has_data())
        operands.emplace_back();
      else
        operands.push_back(known_.constants[at(id)].quantized() ? dequantize(known_.constants[at(id)])
                                                                : known_.constants[at(id)]);
    }
    std::vector<const Tensor *> pointers;
    for (std::size_t i = 0; i < operands.size(); ++i) pointers.push_back(input(i) == kNoValue ? nullptr : &operands[i]);
    const auto table = [&](const QuantizerPtr &qx, const QuantizerPtr &qy) {
      return ops::unary_table(*node_->op, {node_->attrs, pointers, 1}, operand, qx, *qy,
                              node_->clamp ? &*node_->clamp : nullptr);
    };
    const bool same_shape = shape_of(v) == form(x).shape;
    if (auto *step = dynamic_cast<TailedStep *>(same_shape ? open_step(input(operand), x) : nullptr)) {
      const SlotId y = integer_output(v, shape_of(v), form(x).strides);
      return step->append(make_table_tail(table(form(x).quantizer, form(y).quantizer), isa_), y, node_->op->name);
    }
    // A scalar constant of higher rank than x gives the result more axes of length 1.
    const SlotId from = same_shape ? x : contiguous(x);
    const SlotId y = integer_output(v, shape_of(v), same_shape ? form(x).strides : contiguous_strides(shape_of(v)));
    add_step(make_table(edge(from), edge(y), table(form(from).quantizer, form(y).quantizer), isa_));
  }

  void lower_move() {
    if (std::string_view(node_->op->name) == "MaxPool") {
      const Shape &x = shape_of(input(0));
      if (x.size() >= 3 && x.size() <= 5)
        return lower_pool(over_pictures(ops::pool_window("MaxPool", node_->attrs, x)), Pooling::max);
    }
    if (std::string_view(node_->op->name) == "Concat" && lower_channel_concat()) return;
    std::vector<SlotId> views;
    if (lower_as_views(integer(input(node_->op->moved.first)), views)) {
      for (std::size_t o = 0; o < views.size(); ++o) integer_[at(node_->outputs[o])] = views[o];
      return;
    }
    OperandRefs refs;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
      const ValueId v = input(i);
      refs.inputs.push_back(v == kNoValue ? kNoSlot : is_8bit(v) ? on_grid_of_output(v) : real(v));
    }
    const bool rows = is_contiguous(form(integer(input(node_->op->moved.first))));
    for (const ValueId v : node_->outputs)
      refs.outputs.push_back(
          v == kNoValue
              ? kNoSlot
              : integer_output(v, shape_of(v), rows ? contiguous_strides(shape_of(v)) : integer_strides(shape_of(v))));
    StepPtr step = make_run(*node_, refs);
    step->integer = true;
    add_step(std::move(step));
  }

  /// The integers of a value that this node moves, on the grid of its output.
  SlotId on_grid_of_output(ValueId v) {
    const SlotId x = integer(v);
    const QuantizerPtr q = canonical(g_.value(output()).quantizer);
    if (*form(x).quantizer == *q) return x;
    const Tensor meta = Tensor::meta(QTN_FLOAT32, form(x).shape);
    const Tensor *operand = &meta;
    const auto table =
        ops::unary_table(*ops::find_op("Identity"), {{}, std::span(&operand, 1), 1}, 0, form(x).quantizer, *q, nullptr);
    if (auto *step = dynamic_cast<TailedStep *>(open_step(v, x))) {
      const SlotId y = add_slot({QTN_UINT8, form(x).shape, form(x).strides, q});
      step->append(make_table_tail(table, isa_), y, "Requantize");
      return y;
    }
    const SlotId from = dense(x), y = add_slot({QTN_UINT8, form(from).shape, form(from).strides, q});
    StepPtr step = make_table(edge(from), edge(y), table, isa_);
    step->op = "Requantize";
    add_step(std::move(step));
    return y;
  }

  bool lower_channel_concat() {
    const Shape &shape = shape_of(output());
    if (shape.size() < 3 || shape.size() > 5 || element_count(shape) == 0) return false;
    if (normalize_axis(node_->attrs.get_int("axis", 0), shape.size(), "Concat") != 1) return false;
    const SlotId y = integer_output(output(), shape, channels_last_strides(shape));
    join_channels(y, [&](ValueId v) { return on_grid_of_output(v); });
    return true;
  }

  void lower_definition() {
    OperandRefs refs;
    for (const ValueId v : node_->inputs) {
      if (v == kNoValue)
        refs.inputs.push_back(kNoSlot);
      else if (known_.constants[at(v)].has_data())
        refs.inputs.push_back(add_constant(known_.constants[at(v)]));
      else
        refs.inputs.push_back(is_8bit(v) ? contiguous(integer(v)) : real(v));
    }
    std::vector<QuantizerPtr> quantizers;
    for (const ValueId v : node_->outputs) {
      quantizers.push_back(is_8bit(v) ? canonical(g_.value(v).quantizer) : nullptr);
      if (v == kNoValue)
        refs.outputs.push_back(kNoSlot);
      else if (is_8bit(v))
        refs.outputs.push_back(integer_output(v, shape_of(v), contiguous_strides(shape_of(v))));
      else
        refs.outputs.push_back(
            add_slot({known_.types[at(v)].dtype, shape_of(v), contiguous_strides(shape_of(v)), nullptr}));
    }
    add_step(make_definition(*node_, refs, quantizers));
    for (std::size_t o = 0; o < refs.outputs.size(); ++o)
      if (refs.outputs[o] != kNoSlot && !quantizers[o]) settle(node_->outputs[o], refs.outputs[o]);
  }

  void lower_float() {
    if (lower_real()) return;
    OperandRefs refs;
    for (const ValueId v : node_->inputs) refs.inputs.push_back(v == kNoValue ? kNoSlot : real(v));
    for (const ValueId v : node_->outputs)
      refs.outputs.push_back(
          v == kNoValue ? kNoSlot
                        : add_slot({known_.types[at(v)].dtype, shape_of(v), contiguous_strides(shape_of(v)), nullptr}));
    add_step(make_run(*node_, refs));
    for (std::size_t o = 0; o < refs.outputs.size(); ++o)
      if (refs.outputs[o] != kNoSlot) settle(node_->outputs[o], refs.outputs[o]);
  }

  std::map<std::pair<ValueId, ops::OwnGrid>, DynamicOperand> own_grids_;
};

}  // namespace

Plan lower(const graph::Graph &g, std::span<const ops::TensorType> inputs, std::span<const Tensor> values, Isa isa,
           Weights &weights, std::span<const graph::ValueId> watched) {
  return Lowering(g, inputs, values, isa, weights).build(watched);
}

}  // namespace qtn::runtime
