// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/lowering.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "ops/common/recurrent_op.hpp"
#include "ops/common/requantization.hpp"
#include "runtime/steps/linear.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

QuantizerPtr canonical(const QuantizerPtr &q) {
  if (q->dtype() == QTN_UINT8) return q;
  return std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, q->scales(),
                                     std::vector<std::int64_t>{q->zero_points()[0] + 128}, q->numerics());
}

namespace {

Tensor canonical_integers(const Tensor &constant) {
  const QuantizerPtr q = canonical(constant.quantizer());
  const Tensor from = constant.to_contiguous();
  if (q == constant.quantizer()) return from;
  Tensor to(QTN_UINT8, from.shape(), q);
  const auto count = static_cast<std::size_t>(from.count());
  for (std::size_t i = 0; i < count; ++i)
    to.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(from.as<const std::int8_t>()[i] + 128);
  return to;
}

bool walks_windows(const Node &node) {
  return graph::is_convolution(node) || node.op == &ops::kMaxPool || node.op == &ops::kAveragePool ||
         node.op == &ops::kGlobalAveragePool;
}

bool comes_as_integers(const graph::Graph &g, std::size_t i, const ops::TensorType &input) {
  const QuantizerPtr &q = g.value(g.inputs[i]).quantizer;
  return graph::is_8bit_activation(q) && input.dtype == q->dtype();
}

}  // namespace

std::vector<ops::TensorType> real_types(const graph::Graph &g, std::span<const ops::TensorType> inputs) {
  std::vector<ops::TensorType> types(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < types.size(); ++i)
    if (comes_as_integers(g, i, types[i])) types[i].dtype = QTN_FLOAT32;
  return types;
}

Lowering::Lowering(const graph::Graph &graph, std::span<const ops::TensorType> inputs, graph::Inferred known,
                   Isa instructions, Weights &weights)
    : g(graph),
      isa(instructions),
      weights_(weights),
      known_(std::move(known)),
      real_(g.values.size(), kNoSlot),
      integer_(g.values.size(), kNoSlot),
      contiguous_real_(g.values.size(), kNoSlot),
      real_image_(g.values.size(), kNoSlot),
      readers_(g.values.size(), 0),
      read_as_image_(g.values.size(), false) {
  for (const Node &node : g.nodes) {
    for (const ValueId v : node.inputs)
      if (v != kNoValue) ++readers_[at(v)];
    if (walks_windows(node) && node.inputs[0] != kNoValue) read_as_image_[at(node.inputs[0])] = true;
  }
  for (const ValueId v : g.outputs) ++readers_[at(v)];
  plan_.slots.reserve(g.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool integers = comes_as_integers(g, i, inputs[i]);
    const QuantizerPtr grid = integers ? g.value(g.inputs[i]).quantizer : nullptr;
    const SlotId s = add_slot({inputs[i].dtype, inputs[i].shape, contiguous_strides(inputs[i].shape), grid});
    plan_.slots.back().input = static_cast<std::int32_t>(i);
    plan_.inputs.push_back(s);
    integers_ = integers_ || integers;
    if (integers)
      integer_[at(g.inputs[i])] = flipped(s, canonical(grid));
    else
      set_real(g.inputs[i], s);
  }
}

void Lowering::begin(std::size_t node) {
  node_ = &g.nodes[node];
  node_index_ = node;
}

Plan Lowering::finish() {
  node_ = nullptr;
  for (const ValueId v : g.outputs) plan_.outputs.push_back(outgoing(v));
  place_slots(plan_);
  plan_.slots.shrink_to_fit();
  for (std::size_t v = 0; v < g.values.size(); ++v) {
    const Tensor &constant = known_.constants[v];
    const bool is_kept = constant.storage().use_count() > 1;
    if (is_kept && !g.values[v].is_constant()) plan_.constant_bytes += constant.nbytes();
  }
  return std::move(plan_);
}

ops::Clamp Lowering::clamp() const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return node_->clamp.value_or(ops::Clamp{-kInfinity, kInfinity});
}

QuantizedRange Lowering::range(const QuantizerPtr &q) const {
  return ops::output_range(*q, node_->clamp ? &*node_->clamp : nullptr);
}

std::vector<const Tensor *> Lowering::constant_operands(std::vector<Tensor> &storage) const {
  std::vector<const Tensor *> operands;
  storage.resize(node_->inputs.size());
  for (std::size_t i = 0; i < storage.size(); ++i) {
    const ValueId v = input(i);
    if (v != kNoValue)
      storage[i] = constant_of(v).has_data() ? constant_of(v) : Tensor::meta(type_of(v).dtype, shape_of(v));
    operands.push_back(v == kNoValue ? nullptr : &storage[i]);
  }
  return operands;
}

std::vector<ops::TensorType> Lowering::output_types() const {
  std::vector<ops::TensorType> types;
  for (const ValueId v : node_->outputs)
    if (v != kNoValue) types.push_back(type_of(v));
  return types;
}

PackCache part_of(const PackCache &all, std::size_t part, std::size_t parts) {
  return [all, part, parts](std::size_t form, const std::function<PackedPtr()> &pack) {
    return all(form * parts + part, pack);
  };
}

bool Lowering::has_weights_of_its_own() const {
  constexpr std::size_t kStates = 4;  // of recurrent layers, and lengths: these are not packed
  const std::size_t count = ops::is_recurrent(*node_->op) ? kStates : node_->inputs.size();
  for (std::size_t i = 1; i < std::min(count, node_->inputs.size()); ++i)
    if (const ValueId v = input(i); v != kNoValue && constant_of(v).has_data() && !g.value(v).is_constant())
      return true;
  return false;
}

PackCache Lowering::pack_cache(std::size_t part, std::size_t parts) {
  if (has_weights_of_its_own())
    return [this](std::size_t, const std::function<PackedPtr()> &pack) {
      const PackedPtr own = pack();
      plan_.constant_bytes += own->bytes.size();
      return own;
    };
  const auto of_node = [this, n = node_index_](std::size_t form, const std::function<PackedPtr()> &pack) {
    return weights_.packed({n, form}, pack);
  };
  return part_of(of_node, part, parts);
}

LinearWeights Lowering::finished(LinearWeights w, std::size_t channels, const Quantizer &x, const Quantizer *y,
                                 std::size_t part) {
  return finished(std::move(w), part, [&](LinearWeights &of) {
    const ValueId bias = input(2);
    finish_weights(of, bias == kNoValue ? nullptr : &g.value(bias).constant, channels, x, *g.value(input(1)).quantizer,
                   y);
  });
}

LinearWeights Lowering::finished(LinearWeights w, std::size_t part,
                                 const std::function<void(LinearWeights &)> &finish) {
  LinearWeights known = weights_.numbers({node_index_, part}, [&] {
    finish(w);
    w.kernel = &gemm_kernel(w, isa);
    return w;
  });
  known.weight = w.weight;
  return known;
}

std::optional<std::vector<View>> Lowering::views(const SlotForm &x) const {
  if (std::ranges::find(node_->outputs, kNoValue) != node_->outputs.end()) return std::nullopt;
  std::vector<Tensor> storage;
  auto found = views_of(*node_, x, constant_operands(storage), output_types());
  if (found && found->size() != node_->outputs.size()) return std::nullopt;  // the mask of Dropout is no view
  return found;
}

bool Lowering::as_views(SlotId x, std::vector<SlotId> &result) {
  if (is_integer_input(x)) return false;
  const auto found = views(form(x));
  if (!found) return false;
  for (const View &view : *found) result.push_back(add_view(x, view));
  return true;
}

Tensor Lowering::real_constant(ValueId v) {
  if (v == kNoValue || !constant_of(v).has_data()) return {};
  if (!constant_of(v).quantized()) return constant_of(v).to_contiguous();
  return g.value(v).is_constant() ? weights_.dequantized(v, constant_of(v)) : dequantize(constant_of(v));
}

bool Lowering::is_8bit(ValueId v) const { return v != kNoValue && graph::is_8bit_activation(g.value(v).quantizer); }

SlotId Lowering::add_slot(SlotForm slot_form) {
  Slot slot;
  slot.form = std::move(slot_form);
  slot.root = static_cast<SlotId>(plan_.slots.size());
  plan_.slots.push_back(std::move(slot));
  return plan_.slots.back().root;
}

SlotId Lowering::add_constant(const Tensor &constant) {
  const SlotId s = add_slot({constant.dtype(), constant.shape(), constant.strides(), constant.quantizer()});
  plan_.slots.back().constant = std::make_shared<const Tensor>(constant);
  return s;
}

SlotId Lowering::add_view(SlotId of, const View &view) {
  if (is_integer_input(of)) of = copied(of, form(of).strides);
  Slot slot;
  slot.form = {form(of).dtype, view.shape, view.strides, form(of).quantizer};
  slot.root = root(of);
  slot.offset = plan_.slots[static_cast<std::size_t>(of)].offset + view.offset;
  plan_.slots.push_back(std::move(slot));
  const auto view_slot = static_cast<SlotId>(plan_.slots.size() - 1);
  if (plan_.slots[static_cast<std::size_t>(root(of))].input >= 0) plan_.input_views.push_back(view_slot);
  return view_slot;
}

void Lowering::add_step(StepPtr step) {
  if (node_ && step->node.empty()) step->node = node_->name;
  if (step->op.empty()) step->op = node_->op->name;
  plan_.steps.push_back(std::move(step));
}

SlotId Lowering::converted(SlotId from, SlotForm to, StepPtr (*make)(const Edge &, const Edge &, Isa)) {
  const SlotId s = add_slot(std::move(to));
  add_step(make(edge(from), edge(s), isa));
  return s;
}

SlotId Lowering::copied(SlotId from, const Shape &strides) {
  SlotForm to = form(from);
  to.strides = strides;
  const SlotId s = add_slot(std::move(to));
  add_step(make_copy(edge(from), edge(s)));
  return s;
}

/// The same numbers on a grid of the other signedness; itself where it is on this one.
SlotId Lowering::flipped(SlotId from, const QuantizerPtr &grid) {
  if (form(from).dtype == grid->dtype()) return from;
  return converted(from, {grid->dtype(), form(from).shape, form(from).strides, grid}, make_flip);
}

SlotId Lowering::outgoing(ValueId v) {
  return integers_ && is_8bit(v) ? flipped(contiguous(integer(v)), g.value(v).quantizer) : real(v);
}

/// At the end of the step that has just made a matrix of floats, which nothing else reads.
bool Lowering::lower_quantize_tail(ValueId v, SlotId computed) {
  auto *step = plan_.steps.empty() ? nullptr : dynamic_cast<TailedStep *>(plan_.steps.back().get());
  if (!step || step->writes[0] != computed || !is_contiguous(form(computed)) || form(computed).shape.empty() ||
      !step->hold_blocks())
    return false;
  const SlotId q = integer_output(v, form(computed).shape, form(computed).strides);
  step->append(make_quantize_tail(form(q), isa), q, "QuantizeLinear");
  return true;
}

/// Images look like sequences, whose last axis is that of channels: what reads them tells.
bool Lowering::is_read_as_image(ValueId v) const {
  const std::size_t rank = shape_of(v).size();
  return read_as_image_[at(v)] && rank >= 3 && rank <= 5;
}

Shape Lowering::grid_strides(ValueId v) const {
  return is_read_as_image(v) ? channels_last_strides(shape_of(v)) : contiguous_strides(shape_of(v));
}

void Lowering::set_real(ValueId v, SlotId computed) {
  const QuantizerPtr &q = g.value(v).quantizer;
  if (q && form(computed).dtype != QTN_FLOAT32)
    fail(QTN_EDTYPE, "tensor \"", g.value(v).name, "\" is ", dtype_name(form(computed).dtype),
         ", and only float32 is quantized");
  if (!q) {
    real_[at(v)] = computed;
  } else if (graph::is_8bit_activation(q)) {
    const Shape &shape = shape_of(v);
    const bool image = is_read_as_image(v);
    const SlotId lying = is_gapless(form(computed)) ? computed : contiguous(computed);
    const Shape strides = image ? channels_last_strides(shape) : form(lying).strides;
    if (!image && lying == computed && lower_quantize_tail(v, computed)) return;
    const SlotId from = same_layout(shape, form(lying).strides, strides) ? lying : contiguous(lying);
    integer_[at(v)] = converted(from, {QTN_UINT8, shape, strides, canonical(q)}, make_quantize);
  } else {
    const SlotId s = plain_slot(QTN_FLOAT32, shape_of(v));
    add_step(make_round_trip(contiguous(computed), s, q));
    real_[at(v)] = s;
  }
}

SlotId Lowering::real(ValueId v) {
  SlotId &s = contiguous_real_[at(v)];
  if (s != kNoSlot) return s;
  if (real_[at(v)] != kNoSlot) return s = contiguous(real_[at(v)]);
  const Tensor &constant = constant_of(v);
  if (constant.has_data())
    return s = add_constant(constant.quantized() ? weights_.dequantized(v, constant) : constant.to_contiguous());
  const SlotId lying = integer_[at(v)], q = is_dense_image(lying) ? lying : contiguous(lying);
  return s = converted(q, {QTN_FLOAT32, shape_of(v), contiguous_strides(shape_of(v)), nullptr}, make_dequantize);
}

SlotId Lowering::any_real(ValueId v) {
  SlotId &s = real_[at(v)];
  if (s != kNoSlot) return s;
  if (contiguous_real_[at(v)] != kNoSlot || constant_of(v).has_data()) return s = real(v);
  const SlotId q = dense(integer_[at(v)]);
  return s = converted(q, {QTN_FLOAT32, shape_of(v), form(q).strides, nullptr}, make_dequantize);
}

SlotId Lowering::real_image(ValueId v) {
  SlotId &s = real_image_[at(v)];
  if (s != kNoSlot) return s;
  const SlotId any = any_real(v);
  return s = is_dense_image(any) ? any : copied(any, channels_last_strides(shape_of(v)));
}

SlotId Lowering::side_by_side(ValueId v) {
  const SlotForm &x = form(any_real(v));
  return x.shape.empty() || x.shape.back() == 1 || x.strides.back() == 1 ? any_real(v) : real(v);
}

SlotId Lowering::integer(ValueId v) {
  SlotId &s = integer_[at(v)];
  if (s == kNoSlot) s = add_constant(canonical_integers(constant_of(v)));
  return s;
}

bool Lowering::is_dense_image(SlotId s) const {
  const auto image = as_image(form(s).shape, form(s).strides);
  return image && image->pixel == image->c;
}

SlotId Lowering::dense(SlotId s) { return is_gapless(form(s)) ? s : copied(s, strides_as(form(s), form(s).shape)); }

SlotId Lowering::contiguous(SlotId s) {
  const SlotForm &f = form(s);
  return is_contiguous(f) ? s : copied(s, contiguous_strides(f.shape));
}

SlotId Lowering::image(SlotId s) {
  const SlotForm &f = form(s);
  return as_image(f.shape, f.strides) ? s : copied(s, channels_last_strides(f.shape));
}

SlotId Lowering::plain_slot(qdtype dtype, const Shape &shape) {
  return add_slot({dtype, shape, contiguous_strides(shape), nullptr});
}

SlotId Lowering::real_slot(const Shape &shape, const Shape &strides) {
  return add_slot({QTN_FLOAT32, shape, strides, nullptr});
}

SlotId Lowering::integer_output(ValueId v, const Shape &shape, const Shape &strides) {
  return integer_[at(v)] = add_slot({QTN_UINT8, shape, strides, canonical(g.value(v).quantizer)});
}

void Lowering::place_in(SlotId s, SlotId y, const View &place) {
  Slot &slot = plan_.slots[static_cast<std::size_t>(s)];
  slot.root = y;
  slot.offset = place.offset;
  slot.form.strides = place.strides;
}

bool Lowering::is_integer_input(SlotId s) const {
  const Slot &slot = plan_.slots[static_cast<std::size_t>(root(s))];
  return slot.input >= 0 && slot.form.quantizer;
}

std::ptrdiff_t Lowering::producer(SlotId s) const {
  for (std::size_t i = plan_.steps.size(); i-- > 0;)
    for (const SlotId written : plan_.steps[i]->writes)
      if (root(written) == root(s)) return static_cast<std::ptrdiff_t>(i);
  return -1;
}

Lowering::Prefixes *Lowering::prefixes() {
  const auto begins = [](const std::vector<ValueId> &whole, const std::vector<ValueId> &part) {
    return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
  };
  if (!prefixes_) {
    prefixes_.emplace();
    const auto joins = [&](const graph::Node &other) {
      return other.op == node_->op && other.attrs.get_int("axis", 0) == node_->attrs.get_int("axis", 0);
    };
    for (const graph::Node &other : g.nodes)
      if (joins(other)) {
        std::vector<ValueId> &longest = (*prefixes_)[other.inputs[0]].longest;
        if (other.inputs.size() > longest.size()) longest = other.inputs;
      }
    for (const graph::Node &other : g.nodes)
      if (joins(other)) {
        Prefixes &all = prefixes_->at(other.inputs[0]);
        if (begins(all.longest, other.inputs)) all.lengths.push_back(other.inputs.size());
      }
  }
  const auto found = prefixes_->find(input(0));
  const bool one_of_several =
      found != prefixes_->end() && found->second.lengths.size() > 1 && begins(found->second.longest, node_->inputs);
  return one_of_several ? &found->second : nullptr;
}

Step *Lowering::open_step(ValueId v, SlotId s, std::size_t readers) const {
  if (readers_[at(v)] != readers) return nullptr;
  const std::ptrdiff_t i = producer(s);
  const qdtype dtype = form(s).dtype;
  if (i < 0 || !(dtype == QTN_UINT8 || dtype == QTN_FLOAT32)) return nullptr;
  Step *step = plan_.steps[static_cast<std::size_t>(i)].get();
  const auto *tailed = dynamic_cast<const TailedStep *>(step);
  const bool rows = is_contiguous(form(s)) && (dtype == QTN_FLOAT32 || (tailed && tailed->makes_matrices()));
  if (step->writes[0] != s || !(rows || is_dense_image(s))) return nullptr;
  // A watch, or a copy of other strides, has read it.
  for (std::size_t later = static_cast<std::size_t>(i) + 1; later < plan_.steps.size(); ++later)
    for (const SlotId read : plan_.steps[later]->reads)
      if (root(read) == root(s)) return nullptr;
  return step;
}

}  // namespace qtn::runtime
