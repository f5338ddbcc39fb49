// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower_real.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "ops/common/matmulnbits.hpp"
#include "runtime/steps/attention_products.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

PackCache RealLowering::pack_cache(std::size_t part, std::size_t parts) {
  const std::size_t n = node_index_;
  return [this, n, part, parts](std::size_t form, const std::function<PackedWeights()> &pack) {
    return weights_.packed({n, form * parts + part}, pack);
  };
}

ops::Clamp RealLowering::clamp() const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return node_->clamp.value_or(ops::Clamp{-kInfinity, kInfinity});
}

std::vector<const Tensor *> RealLowering::constant_operands(std::vector<Tensor> &storage) const {
  std::vector<const Tensor *> operands;
  storage.resize(node_->inputs.size());
  for (std::size_t i = 0; i < storage.size(); ++i) {
    const ValueId v = input(i);
    if (v != kNoValue)
      storage[i] = known_.constants[at(v)].has_data() ? known_.constants[at(v)]
                                                      : Tensor::meta(known_.types[at(v)].dtype, shape_of(v));
    operands.push_back(v == kNoValue ? nullptr : &storage[i]);
  }
  return operands;
}

std::vector<ops::TensorType> RealLowering::output_types() const {
  std::vector<ops::TensorType> types;
  for (const ValueId v : node_->outputs)
    if (v != kNoValue) types.push_back(known_.types[at(v)]);
  return types;
}

std::optional<std::vector<View>> RealLowering::views(const SlotForm &x) const {
  if (std::find(node_->outputs.begin(), node_->outputs.end(), kNoValue) != node_->outputs.end()) return std::nullopt;
  std::vector<Tensor> storage;
  auto found = views_of(*node_, x, constant_operands(storage), output_types());
  if (found && found->size() != node_->outputs.size()) return std::nullopt;  // the mask of Dropout is no view
  return found;
}

bool RealLowering::lower_as_views(SlotId x, std::vector<SlotId> &result) {
  const Slot &slot = plan_.slots[static_cast<std::size_t>(x)];
  if (plan_.slots[static_cast<std::size_t>(slot.root)].input >= 0) return false;  // bound again at every run
  const auto found = views(form(x));
  if (!found) return false;
  for (const View &view : *found) result.push_back(add_view(x, view));
  return true;
}

void RealLowering::interleave(SlotId part, std::ptrdiff_t channel, const Phase &all, SlotId y, const Phase &phase,
                              const ops::Window &window) {
  View from{picture_shape(form(y).shape, form(y).shape[1], phase.count), form(part).strides, channel};
  View to{from.shape, form(y).strides, 0};
  const Shape steps = picture_shape(from.shape, 1, window.stride), first = picture_shape(from.shape, 0, phase.at),
              skipped = picture_shape(from.shape, 0, all.skipped);
  for (std::size_t axis = 2; axis < from.shape.size(); ++axis) {
    from.offset += skipped[axis] * from.strides[axis];
    to.offset += first[axis] * to.strides[axis];
    to.strides[axis] *= steps[axis];
  }
  add_step(make_copy(edge(add_view(part, from)), edge(add_view(y, to))));
}

bool RealLowering::reduces_pictures() const {
  const Shape &x = shape_of(input(0));
  if (input(1) == kNoValue || !known_.constants[at(input(1))].has_data()) return false;
  std::vector<bool> reduced(x.size(), false);
  for (const std::int64_t a : int_values(known_.constants[at(input(1))], "ReduceMean: axes"))
    reduced[normalize_axis(a, x.size(), "ReduceMean")] = true;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (reduced[i] != (i >= 2)) return false;
  return true;
}

bool RealLowering::is_real(ValueId v) const { return v != kNoValue && known_.types[at(v)].dtype == QTN_FLOAT32; }

Tensor RealLowering::real_constant(ValueId v) {
  if (v == kNoValue || !known_.constants[at(v)].has_data()) return {};
  const Tensor &constant = known_.constants[at(v)];
  return constant.quantized() ? weights_.dequantized(v, constant) : constant.to_contiguous();
}

SlotId RealLowering::real_slot(const Shape &shape, const Shape &strides) {
  return add_slot({QTN_FLOAT32, shape, strides, nullptr});
}

bool RealLowering::lower_real() {
  for (const ValueId v : node_->outputs)
    if (v != kNoValue && element_count(shape_of(v)) == 0) return false;
  if (lower_embedding() || lower_real_view()) return true;
  if (lower_real_recurrent() || lower_real_heads()) return true;
  if (!is_real(output()) || !is_real(input(0))) return false;
  return lower_real_conv() || lower_real_transposed() || lower_real_matrix() || lower_blocks() || lower_real_matmul() ||
         lower_real_pool() || lower_real_normalization() || lower_real_add() || lower_real_bias() ||
         lower_real_concat() || lower_on_pictures();
}

bool RealLowering::lower_real_view() {
  if (!ops::moves(*node_->op, node_->attrs) || node_->clamp) return false;
  std::vector<SlotId> parts;
  if (!lower_as_views(any_real(input(0)), parts)) {
    // A Reshape of strided elements may be one of contiguous elements.
    const Shape &x = shape_of(input(0));
    if (!views({known_.types[at(input(0))].dtype, x, contiguous_strides(x), nullptr}) ||
        !lower_as_views(real(input(0)), parts))
      return false;
  }
  for (std::size_t o = 0; o < parts.size(); ++o) settle(node_->outputs[o], parts[o]);
  return true;
}

void RealLowering::add_real_convolution(SlotId x, SlotId y, const ops::Window &window, const RealWeights &w,
                                        const PackCache &cache) {
  const bool depthwise = w.out == 1 && static_cast<std::int64_t>(w.groups) == form(x).shape[1] && w.groups > 1;
  add_step(depthwise && is_flat(window) ? make_real_depthwise(edge(x), edge(y), window, w, clamp(), isa_, cache)
                                        : make_real_conv(edge(x), edge(y), window, w, clamp(), isa_, cache));
}

/// The table stays in integers, of which a run needs a few rows.
bool RealLowering::lower_embedding() {
  if (node_->op != &ops::kGather || node_->clamp) return false;
  const Tensor &constant = known_.constants[at(input(0))];
  if (!constant.has_data() || !constant.quantized() || constant.rank() != 2 || !is_real(output())) return false;
  const Tensor table = constant.to_contiguous();
  const Quantizer &q = *table.quantizer();
  const bool by_row = q.per_channel() && (q.axis() == 0 || q.axis() == -2);
  const std::int64_t axis = node_->attrs.get_int("axis", 0);
  if ((q.dtype() != QTN_INT8 && q.dtype() != QTN_UINT8) || q.per_block() || (q.per_channel() && !by_row) ||
      q.numerics() != Numerics::onnx || (axis != 0 && axis != -2))
    return false;
  const Shape &shape = shape_of(output());
  const SlotId y = real_slot(shape, contiguous_strides(shape));
  add_step(make_embedding(table, edge(real(input(1))), edge(y), isa_));
  settle(output(), y);
  return true;
}

bool RealLowering::lower_real_conv() {
  if (node_->op != &ops::kConv) return false;
  const Shape &x = shape_of(input(0)), &shape = shape_of(output());
  const bool biased = input(2) != kNoValue;
  const Tensor weight = real_constant(input(1)), bias = real_constant(input(2));
  if (x.size() < 3 || x.size() > 5 || !weight.has_data() || (biased && !bias.has_data())) return false;
  const ops::Window window = over_pictures(ops::conv_window(node_->attrs, x, weight.shape()));
  if (!is_ordinary(window) || element_count(x) == 0 || weight.count() == 0) return false;
  RealWeights w;
  w.groups = static_cast<std::size_t>(node_->attrs.get_int("group", 1));
  w.out = static_cast<std::size_t>(weight.dim(0)) / w.groups;
  w.taps = element_count(weight.shape(), 2, weight.rank());
  w.k = static_cast<std::size_t>(weight.dim(1) * w.taps);
  if (w.out == 1 && w.groups > 1 && !is_flat(window)) return false;  // each channel of a volume for itself
  w.weight = weight;
  w.bias = bias;
  const SlotId from = as_picture(x, form(any_real(input(0))).strides) ? any_real(input(0)) : real_picture(input(0));
  const SlotId y = real_slot(shape, channels_last_strides(shape));
  add_real_convolution(from, y, window, w, pack_cache());
  settle(output(), y);
  return true;
}

bool RealLowering::lower_real_transposed() {
  if (node_->op != &ops::kConvTranspose) return false;
  const Shape &x = shape_of(input(0)), &shape = shape_of(output());
  const bool biased = input(2) != kNoValue;
  const Tensor weight = real_constant(input(1)), bias = real_constant(input(2));
  if (x.size() < 3 || x.size() > 5 || !weight.has_data() || (biased && !bias.has_data())) return false;
  if (element_count(x) == 0 || weight.count() == 0) return false;
  const ops::Window window = over_pictures(ops::transposed_window(node_->attrs, x, weight.shape()));
  const std::int64_t groups = node_->attrs.get_int("group", 1);
  const auto phases = phases_of(window);
  if (!phases) return false;
  const auto residues = static_cast<std::size_t>(element_count(Shape(window.stride)));
  std::vector<std::pair<std::span<const Phase>, Phase>> products;
  if (share_product(window, *phases, groups, shape[1]))
    products.emplace_back(*phases, joined(*phases));
  else
    for (const Phase &phase : *phases) products.emplace_back(std::span(&phase, 1), phase);
  for (const auto &[some, all] : products)
    if (!is_ordinary(all.window)) return false;

  const SlotId from = real_picture(input(0)), y = real_slot(shape, channels_last_strides(shape));
  for (const auto &[some, all] : products) {
    const bool whole = phases->size() == 1 && all.window.out == all.count;
    const Shape made = picture_shape(shape, shape[1] * static_cast<std::int64_t>(some.size()), all.window.out);
    const SlotId to = whole ? y : real_slot(made, channels_last_strides(made));
    const std::size_t part = some.size() > 1 ? residues + some[0].residue : all.residue;
    add_real_convolution(from, to, all.window, real_phase_weights(weight, bias, groups, some, all),
                         pack_cache(part, 2 * residues));
    for (std::size_t i = 0; i < some.size() && !whole; ++i)
      interleave(to, static_cast<std::ptrdiff_t>(i) * shape[1], all, y, some[i], window);
  }
  settle(output(), y);
  return true;
}

/// Rows by a constant matrix.
bool RealLowering::lower_real_matrix() {
  const bool gemm = node_->op == &ops::kGemm;
  if (!gemm && node_->op != &ops::kMatMul) return false;
  if (gemm && (node_->attrs.get_int("transA", 0) != 0 || node_->attrs.get_float("alpha", 1) != 1 ||
               node_->attrs.get_float("beta", 1) != 1))
    return false;
  const Tensor &weight = known_.constants[at(input(1))], bias = real_constant(input(2));
  const Shape &x = shape_of(input(0)), &shape = shape_of(output());
  if (!weight.has_data() || weight.rank() != 2 || weight.count() == 0 || x.size() < 2 || element_count(x) == 0)
    return false;
  const bool is_matrix = !gemm || node_->attrs.get_int("transB", 0) == 0;
  const std::int64_t depth = weight.dim(is_matrix ? 0 : 1), out = weight.dim(is_matrix ? 1 : 0);
  // A bias for each column: not a scalar, not a matrix.
  if (input(2) != kNoValue && (!bias.has_data() || bias.count() != out || bias.shape().back() != out)) return false;
  const auto k = static_cast<std::size_t>(depth), columns = static_cast<std::size_t>(out);
  const std::size_t rows = static_cast<std::size_t>(element_count(x)) / k;
  const SlotId from = real(input(0)), y = real_slot(shape, contiguous_strides(shape));
  const CodedWeights coded{weight, bias, columns, k, is_matrix};
  if (stays_coded(coded, isa_)) {
    add_step(make_coded_gemm(edge(from), edge(y), rows, coded, clamp(), isa_, pack_cache()));
  } else {
    const RealWeights w{real_constant(input(1)), bias, 1, columns, k, 1, is_matrix};
    add_step(make_real_gemm(edge(from), edge(y), rows, w, clamp(), isa_, pack_cache()));
  }
  settle(output(), y);
  return true;
}

/// MatMulNBits whose activations become integers.
bool RealLowering::lower_blocks() {
  if (node_->op != &ops::kMatMulNBits || element_count(shape_of(input(0))) == 0) return false;
  for (std::size_t i = 1; i < node_->inputs.size(); ++i)
    if (input(i) != kNoValue && !known_.constants[at(input(i))].has_data()) return false;
  std::vector<Tensor> storage;
  const std::vector<const Tensor *> operands = constant_operands(storage);
  const ops::Call call{node_->attrs, operands};
  if (!ops::multiplies_bytes(call)) return false;
  const BlocksOperand x = in_blocks(input(0), ops::nbits_form(call));
  const Shape &shape = shape_of(output());
  const SlotId y = real_slot(shape, contiguous_strides(shape));
  add_step(make_block_product(x, edge(y), call, clamp(), isa_, pack_cache()));
  settle(output(), y);
  return true;
}

BlocksOperand RealLowering::in_blocks(ValueId x, const kernels::BlocksForm &form) {
  const auto [entry, is_new] = in_blocks_.try_emplace({x, form.block});
  if (is_new) {
    const std::int64_t rows = element_count(shape_of(x)) / static_cast<std::int64_t>(form.k);
    const auto slot = [&](qdtype dtype, std::size_t columns) {
      const Shape shape{rows, static_cast<std::int64_t>(columns)};
      return add_slot({dtype, shape, contiguous_strides(shape), nullptr});
    };
    entry->second = {real(x), slot(QTN_INT8, form.row_bytes()), slot(QTN_FLOAT32, form.blocks()),
                     slot(QTN_INT32, form.blocks()), static_cast<std::size_t>(rows)};
    add_step(make_block_quantize(entry->second, form, isa_));
  }
  return entry->second;
}

/// As it was computed where the elements of its rows lie side by side.
SlotId RealLowering::side_by_side(ValueId v) {
  const SlotForm &x = form(any_real(v));
  return x.shape.empty() || x.shape.back() == 1 || x.strides.back() == 1 ? any_real(v) : real(v);
}

namespace {

ScoreTerm::Kind kind_of(std::string_view op) {
  if (op == "Where") return ScoreTerm::where;
  if (op == "Mul") return ScoreTerm::mul;
  if (op == "Div") return ScoreTerm::div;
  return op == "Sub" ? ScoreTerm::sub : ScoreTerm::add;
}

Shape stack_of(const Shape &matrices) { return Shape(std::span(matrices).first(matrices.size() - 2)); }

}  // namespace

void RealLowering::lower_attention(const AttentionFormula &formula) {
  const Shape &shape = shape_of(output());
  std::vector<ScoreTerm> terms;
  for (const auto &[node, scores] : formula.terms) {
    const ScoreTerm::Kind kind = kind_of(node->op->name);
    const bool where = kind == ScoreTerm::where;
    const Edge other = edge(side_by_side(node->inputs[where ? 0 : 1 - scores]));
    // Values may repeat scores, which then are those of the result.
    const Shape own = stack_of(shape_of(node->outputs[0])), whole = stack_of(shape);
    terms.push_back({kind, element_count(own) == element_count(whole) ? own : whole, scores == (where ? 1 : 0), other});
    if (where) terms.back().filler = edge(side_by_side(node->inputs[3 - scores]));
  }
  Shape strides = contiguous_strides(shape);
  if (formula.by_query) {
    const std::size_t queries = shape.size() - 2, heads = shape.size() - 3;
    strides[heads] = shape.back();
    strides[queries] = shape.back() * shape[heads];
  }
  const SlotId y = real_slot(shape, strides);
  add_step(make_attention(
      edge(side_by_side(formula.queries)), edge(any_real(formula.keys)), edge(any_real(formula.values)), edge(y),
      std::move(terms),
      formula.integer ? make_integer_products(formula.centered, clamp(), isa_) : make_real_products(clamp(), isa_),
      isa_));
  settle(output(), y);
}

/// Matrices of which both are computed.
bool RealLowering::lower_real_matmul() {
  if (node_->op != &ops::kMatMul || !is_real(input(1))) return false;
  const Shape &a = shape_of(input(0)), &b = shape_of(input(1)), &shape = shape_of(output());
  if (a.size() < 2 || b.size() < 2 || element_count(a) == 0 || element_count(b) == 0) return false;
  const SlotId y = real_slot(shape, contiguous_strides(shape));
  add_step(make_real_matmul(edge(side_by_side(input(0))), edge(any_real(input(1))), edge(y), clamp(), isa_));
  settle(output(), y);
  return true;
}

bool RealLowering::lower_real_pool() {
  const std::string_view op = node_->op->name;
  const Shape &x = shape_of(input(0));
  const bool max = op == "MaxPool" && node_->outputs.size() == 1;
  const bool global = op == "GlobalAveragePool" || (op == "ReduceMean" && x.size() >= 3 && reduces_pictures());
  if (!max && !global && op != "AveragePool") return false;
  // Planes by planes, as the operator does it, are as good where they lie so.
  if (x.size() < 3 || x.size() > 5 || node_->clamp || !is_dense_picture(any_real(input(0)))) return false;
  const ops::Window window = global ? whole_picture(x) : over_pictures(ops::pool_window(op.data(), node_->attrs, x));
  if (!is_ordinary(window)) return false;
  // ReduceMean may drop the axes that its pooled picture keeps with length 1.
  const Shape shape = picture_shape(x, x[1], window.out);
  SlotId y = real_slot(shape, channels_last_strides(shape));
  add_step(make_real_pool(edge(any_real(input(0))), edge(y), window, max ? Pooling::max : Pooling::average,
                          node_->attrs.get_int("count_include_pad", 0) != 0, isa_));
  if (shape != shape_of(output())) y = add_view(y, {shape_of(output()), contiguous_strides(shape_of(output())), 0});
  settle(output(), y);
  return true;
}

bool RealLowering::lower_real_normalization() {
  if (std::string_view(node_->op->name) != "BatchNormalization" || node_->outputs.size() != 1) return false;
  const SlotId x = any_real(input(0));
  if (node_->attrs.get_int("training_mode", 0) != 0 || is_contiguous(form(x)) ||
      !as_picture(form(x).shape, form(x).strides))
    return false;
  const RealNormalization n{real_constant(input(1)), real_constant(input(2)), real_constant(input(3)),
                            real_constant(input(4)), node_->attrs.get_float("epsilon", 1e-5)};
  for (const Tensor *t : {&n.scale, &n.shift, &n.mean, &n.variance})
    if (!t->has_data()) return false;
  const Shape &shape = shape_of(output());
  const SlotId y = real_slot(shape, channels_last_strides(shape));
  add_step(make_real_normalize(edge(x), edge(y), n, clamp()));
  settle(output(), y);
  return true;
}

/// At the end of the step that computes the later operand.
bool RealLowering::lower_real_add() {
  if (std::string_view(node_->op->name) != "Add") return false;
  const Shape &shape = shape_of(output());
  for (const ValueId v : {input(0), input(1)})
    if (shape_of(v) != shape || known_.constants[at(v)].has_data()) return false;
  const SlotId a = any_real(input(0)), b = any_real(input(1));
  const bool swapped = producer(b) > producer(a);
  const SlotId mine = swapped ? b : a, other = swapped ? a : b;
  if (producer(other) >= producer(mine)) return false;
  auto *step = dynamic_cast<TailedStep *>(open_step(input(swapped ? 1 : 0), mine));
  if (!step) return false;
  const auto row = step->row_of(form(other).shape, form(other).strides);
  if (!row) return false;
  const SlotId y = real_slot(shape, form(mine).strides);
  step->append(make_real_add_tail(other, *row, clamp()), y, node_->op->name);
  settle(output(), y);
  return true;
}

/// A number for each column of a product, at the end of the step that computes it.
bool RealLowering::lower_real_bias() {
  if (std::string_view(node_->op->name) != "Add") return false;
  const Shape &shape = shape_of(output());
  for (const std::size_t i : {0, 1}) {
    const Tensor &row = known_.constants[at(input(1 - i))];
    if (!row.has_data() || row.rank() == 0 || row.count() != shape.back() || row.shape().back() != shape.back() ||
        shape_of(input(i)) != shape)
      continue;
    const SlotId rows = any_real(input(i));
    if (!is_contiguous(form(rows)) || is_dense_picture(rows)) continue;
    auto *step = dynamic_cast<TailedStep *>(open_step(input(i), rows));
    if (!step) continue;
    const SlotId y = real_slot(shape, form(rows).strides);
    step->append(make_real_bias_tail(real(input(1 - i)), clamp()), y, node_->op->name);
    settle(output(), y);
    return true;
  }
  return false;
}

void RealLowering::join_channels(SlotId y, const std::function<SlotId(ValueId)> &part_of) {
  std::ptrdiff_t channel = 0;
  for (const ValueId v : node_->inputs) {
    const SlotId part = part_of(v);
    const View place{shape_of(v), form(y).strides, channel};
    channel += shape_of(v)[1];
    if (element_count(shape_of(v)) == 0) continue;
    Step *step = is_dense_picture(part) ? open_step(v, part) : nullptr;
    if (step && step->spread_output(as_picture(form(y).shape, form(y).strides)->pixel)) {
      Slot &slot = plan_.slots[static_cast<std::size_t>(part)];
      slot.root = y;
      slot.offset = place.offset;
      slot.form.strides = place.strides;
    } else {
      add_step(make_copy(edge(part), edge(add_view(y, place))));
    }
  }
}

/// Where an operand lies as a picture already; otherwise planes are copied as well one after the other.
bool RealLowering::lower_real_concat() {
  if (std::string_view(node_->op->name) != "Concat" || node_->clamp) return false;
  const Shape &shape = shape_of(output());
  if (shape.size() < 3 || shape.size() > 5) return false;
  if (normalize_axis(node_->attrs.get_int("axis", 0), shape.size(), "Concat") != 1) return false;
  if (std::none_of(node_->inputs.begin(), node_->inputs.end(), [&](ValueId v) {
        return !is_contiguous(form(any_real(v))) && as_picture(shape_of(v), form(any_real(v)).strides);
      }))
    return false;
  const SlotId y = real_slot(shape, channels_last_strides(shape));
  join_channels(y, [&](ValueId v) { return any_real(v); });
  settle(output(), y);
  return true;
}

/// Value v broadcast to `rank` axes, seen with its channels as the last one.
SlotId RealLowering::channels_last(ValueId v, std::size_t rank) {
  Shape shape = shape_of(v);
  SlotId s = any_real(v);
  if (shape.size() == rank) {
    if (!same_layout(shape, form(s).strides, channels_last_strides(shape))) s = real_picture(v);
  } else {
    s = real(v);
    while (shape.size() < rank) shape.insert(0, 1);
    if (!same_layout(shape, contiguous_strides(shape), channels_last_strides(shape)))
      s = copied(add_view(s, {shape, contiguous_strides(shape), 0}), channels_last_strides(shape));
  }
  return channels_as_last_axis(s, shape);
}

/// A dense picture of this shape as the contiguous tensor that it is in memory.
SlotId RealLowering::channels_as_last_axis(SlotId picture, Shape shape) {
  std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  return add_view(picture, {shape, contiguous_strides(shape), 0});
}

/// Element by element over pictures, as they lie: the operator sees the channels as the last axis.
bool RealLowering::lower_on_pictures() {
  if (!node_->op->elementwise || node_->outputs.size() != 1) return false;
  const Shape &shape = shape_of(output());
  const std::size_t rank = shape.size();
  if (rank < 3 || rank > 5) return false;
  bool picture = false;
  for (const ValueId v : node_->inputs) {
    if (v == kNoValue) continue;
    if (plan_.slots[static_cast<std::size_t>(any_real(v))].input >= 0) return false;
    const SlotId s = any_real(v);
    picture = picture || (shape_of(v) == shape && is_dense_picture(s) && !is_contiguous(form(s)));
  }
  if (!picture) return false;
  OperandRefs refs;
  for (const ValueId v : node_->inputs) refs.inputs.push_back(v == kNoValue ? kNoSlot : channels_last(v, rank));
  const SlotId y = real_slot(shape, channels_last_strides(shape));
  refs.outputs = {channels_as_last_axis(y, shape)};
  add_step(make_run(*node_, refs));
  settle(output(), y);
  return true;
}

}  // namespace qtn::runtime
