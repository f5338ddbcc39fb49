// SPDX-License-Identifier: Apache-2.0
#include "onnx/settled_types.hpp"

#include <algorithm>
#include <string_view>

#include "graph/facts.hpp"
#include "onnx/bodies.hpp"
#include "onnx/qoperator_forms.hpp"
#include "ops/custom.hpp"

namespace qtn::onnx {
namespace {

using graph::ValueId;

using Types = std::vector<std::optional<qdtype>>;  ///< by value id

std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }

std::optional<qdtype> type_of(const graph::Value &value) {
  if (!value.is_constant()) return value.dtype;
  return value.constant.quantized() ? QTN_FLOAT32 : value.constant.dtype();
}

/// The zero point of the integers that a node makes, or the input where it would be.
std::optional<std::size_t> zero_of_result(const graph::Node &node) {
  if (node.op->coding == ops::Coding::to_integers) return 2;
  if (node.op == &ops::kQLinearConcat) return 1;
  const auto forms = qoperator_forms();
  const auto form = std::ranges::find(forms, std::string_view(node.op->name), &QOperatorForm::name);
  return form == forms.end() ? std::nullopt : std::optional(form->y_scale + 1);
}

/// The type of an output, where it is known; `given` is that of what the node moves.
std::optional<qdtype> made_type(const graph::Node &node, std::size_t output, const Types &types,
                                std::optional<qdtype> given) {
  const auto type_at = [&](std::size_t i) {
    return input(node, i) == graph::kNoValue ? std::nullopt : types[at(input(node, i))];
  };
  if (node.op->coding != ops::Coding::none)
    if (const std::int64_t code = node.attrs.get_int("output_dtype", 0)) return static_cast<qdtype>(code);
  if (node.op->coding == ops::Coding::to_reals) return type_at(1);
  if (const auto zero = zero_of_result(node)) {
    if (input(node, *zero) != graph::kNoValue) return type_at(*zero);
    return node.op == &ops::kQGemm ? QTN_FLOAT32 : QTN_UINT8;
  }
  constexpr auto kNotKnown = static_cast<qdtype>(0);
  const qdtype made = ops::made_dtype(*node.op, node.attrs, output, given.value_or(kNotKnown));
  return made == kNotKnown ? std::nullopt : std::optional(made);
}

void settle(graph::Value &value, std::optional<qdtype> dtype) {
  if (!value.dtype && dtype && *dtype != QTN_FLOAT32) value.dtype = dtype;
}

/// Bounds and pads that were attributes, which are single numbers of float32, in the type of what they meet.
void settle_operands(graph::Graph &g, graph::Node &node, qdtype dtype) {
  if (node.op != &ops::kClip && node.op != &ops::kPad) return;
  if (dtype != QTN_FLOAT64 && !is_narrow_float(dtype)) return;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == graph::kNoValue || !g.value(v).is_constant()) continue;
    const Tensor &number = g.value(v).constant;
    if (number.dtype() != QTN_FLOAT32 || number.count() != 1) continue;
    Attrs to;
    to.set("to", std::int64_t{dtype});
    const Tensor *inputs[] = {&number};
    Tensor cast = ops::run_op(ops::kCast, ops::Call{to, inputs, 1})[0];
    node.inputs[i] = g.add_constant(g.value(v).name, std::move(cast));
  }
}

/// The bodies of a node among values of these types.
void settle_bodies(graph::Node &node, const Types &types) {
  change_bodies(node, [&](graph::Graph &settled) {
    const std::size_t before = node.inputs.size() - settled.inputs.size();  // the condition of an If
    for (std::size_t i = 0; i < settled.inputs.size(); ++i) {
      const ValueId outer = node.inputs[before + i];
      const bool counts = node.op == &ops::kLoop && i < 2;
      settle(settled.value(settled.inputs[i]), counts                     ? (i == 0 ? QTN_INT64 : QTN_BOOL)
                                               : outer == graph::kNoValue ? std::nullopt
                                                                          : types[at(outer)]);
    }
    settle_types(settled);
  });
}

}  // namespace

void settle_types(graph::Graph &g) {
  Types types;
  for (const graph::Value &value : g.values) types.push_back(type_of(value));
  for (graph::Node &node : g.nodes) {
    settle_bodies(node, types);
    const ValueId moved = graph::input_of(node, node.op->moved.first);
    const std::optional<qdtype> given = moved == graph::kNoValue ? std::nullopt : types[at(moved)];
    settle_operands(g, node, given.value_or(QTN_FLOAT32));
    types.resize(g.values.size(), given);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == graph::kNoValue || types[at(node.outputs[o])]) continue;
      std::optional<qdtype> &type = types[at(node.outputs[o])];
      if (!node.bodies.empty())
        type = body_dtype(node, o);
      else if (!ops::as_custom(*node.op))
        type = made_type(node, o, types, given);
    }
  }
  for (const ValueId v : g.outputs) settle(g.value(v), types[at(v)]);
}

}  // namespace qtn::onnx
