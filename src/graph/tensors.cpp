// SPDX-License-Identifier: Apache-2.0
#include "graph/tensors.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/integer.hpp"
#include "graph/nearest.hpp"

namespace qtn::graph {
namespace {

constexpr std::string_view kSuffixes[] = {"_quantized", "_equalized", "_corrected", "_scaled", "_row"};

/// The name, or one that it was made of.
bool comes_from(std::string_view name, std::string_view wanted) {
  for (; !name.empty(); name = without_suffix(name))
    if (name == wanted) return true;
  return false;
}

std::string described(const Tensor &t) {
  return cat("a ", t.quantized() ? "quantized " : "", to_string(t.shape()), " tensor of ", dtype_name(t.dtype()));
}

/// A product whose weights are integers, with their scales and zero points as constants beside them.
struct DynamicWeights {
  std::vector<std::size_t> products;  ///< nodes that read them
  ValueId scales = kNoValue, zeros = kNoValue;
  std::size_t axis = 0;  ///< of output channels
};

ValueId input(const Node &node, std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }

/// Nothing where others read the weights, or their products have scales of different constants.
DynamicWeights dynamic_weights(const Graph &g, ValueId v) {
  DynamicWeights found;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const Node &node = g.nodes[n];
    if (std::find(node.inputs.begin(), node.inputs.end(), v) == node.inputs.end()) continue;
    const bool first = found.products.empty();
    if (!is_dynamic_product(node) || node.inputs[1] != v || g.value(v).constant.rank() < 2 ||
        !g.value(node.inputs[2]).is_constant() ||
        (input(node, 3) != kNoValue && !g.value(node.inputs[3]).is_constant()) ||
        (!first &&
         (node.inputs[2] != found.scales || input(node, 3) != found.zeros || output_channel_axis(node) != found.axis)))
      return {};
    found.products.push_back(n);
    found.scales = node.inputs[2];
    found.zeros = input(node, 3);
    found.axis = output_channel_axis(node);
  }
  return found;
}

QuantizerPtr quantizer_of(const Graph &g, const DynamicWeights &weights, qdtype dtype) {
  const std::vector<float> scales = float_values(g.value(weights.scales).constant, "scales");
  std::vector<std::int64_t> zeros(scales.size(), 0);
  if (weights.zeros != kNoValue) {
    const std::vector<std::int64_t> given = int_values(g.value(weights.zeros).constant, "zero points");
    for (std::size_t i = 0; i < zeros.size(); ++i) zeros[i] = given[given.size() == 1 ? 0 : i];
  }
  return std::make_shared<Quantizer>(dtype, scales.size() > 1 ? QTN_PER_CHANNEL_AFFINE : QTN_PER_TENSOR_AFFINE,
                                     static_cast<std::int32_t>(weights.axis),
                                     std::vector<double>(scales.begin(), scales.end()), std::move(zeros),
                                     Numerics::onnx);
}

/// Integers stand for themselves, scales are what a file can hold.
QuantizerPtr in_files(const Quantizer &q) {
  std::vector<double> scales;
  for (const double scale : q.scales()) scales.push_back(static_cast<double>(static_cast<float>(scale)));
  return std::make_shared<Quantizer>(q.dtype(), q.scheme(), q.axis(), std::move(scales), q.zero_points(),
                                     Numerics::onnx, q.block_size());
}

/// Integers, scales and zero points of dynamic products, each in the place of what was there.
void set_dynamic(Graph &g, const std::string &what, ValueId v, const DynamicWeights &weights, const Tensor &t) {
  const Quantizer &q = *t.quantizer();
  const Uses uses(g);
  const auto own = [&](ValueId of) {
    return of == kNoValue || uses.consumers[static_cast<std::size_t>(of)].size() == weights.products.size();
  };
  if (!own(weights.scales) || !own(weights.zeros))
    fail(QTN_EUNSUPPORTED, what, " shares its scales with other weights");
  if (q.per_block() || (q.per_channel() && q.axis() != static_cast<std::int32_t>(weights.axis)))
    fail(QTN_EUNSUPPORTED, what, " has scales for the whole or along axis ", weights.axis, ", t has them ",
         q.per_block() ? "in blocks" : cat("along axis ", q.axis()));
  const bool centered = std::all_of(q.zero_points().begin(), q.zero_points().end(), [](auto z) { return z == 0; });
  if (weights.zeros == kNoValue && !centered) fail(QTN_EUNSUPPORTED, what, " has no zero points, t has");
  const std::vector<float> values(q.scales().begin(), q.scales().end());
  const auto count = static_cast<std::int64_t>(values.size());
  const Shape shape = q.per_channel() ? Shape{count} : Shape{};
  const Tensor scales = Tensor::from<float>(QTN_FLOAT32, shape, std::span(values));
  Tensor zeros(t.dtype(), shape);
  for (std::size_t i = 0; i < values.size(); ++i)
    zeros.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(q.zero_points()[i]);
  const Tensor integers = t.with_quantizer(nullptr).clone();
  const auto put = [&](ValueId to, const Tensor &constant) {
    g.value(to).constant = constant;
    g.value(to).shape = constant.shape();
  };
  put(v, integers);
  put(weights.scales, scales);
  if (weights.zeros != kNoValue) put(weights.zeros, zeros);
}

/// Types of the outputs where the inputs say enough.
std::vector<ops::TensorType> output_types(const Graph &g) {
  std::vector<ops::TensorType> types;
  const auto inputs = declared_input_types(g, 1);
  if (!inputs) return types;
  try {
    const Inferred inferred = infer(g, *inputs);
    for (const ValueId v : g.outputs) types.push_back(inferred.types[static_cast<std::size_t>(v)]);
  } catch (const NotKnown &) {
    types.clear();
  } catch (const Error &) {
    if (!has_open_dimension(g)) throw;
    types.clear();  // it does not stand for 1
  }
  return types;
}

bool same_types(const std::vector<ops::TensorType> &a, const std::vector<ops::TensorType> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ops::TensorType &x, const ops::TensorType &y) {
    return x.dtype == y.dtype && x.shape == y.shape;
  });
}

}  // namespace

std::vector<ValueId> used_constants(const Graph &g) {
  std::vector<bool> used(g.values.size(), false);
  const auto use = [&](ValueId v) {
    if (v != kNoValue) used[static_cast<std::size_t>(v)] = true;
  };
  for (const Node &node : g.nodes) std::for_each(node.inputs.begin(), node.inputs.end(), use);
  std::for_each(g.outputs.begin(), g.outputs.end(), use);
  std::vector<ValueId> constants;
  for (std::size_t v = 0; v < used.size(); ++v)
    if (used[v] && g.values[v].is_constant()) constants.push_back(static_cast<ValueId>(v));
  return constants;
}

std::string_view without_suffix(std::string_view name) {
  std::string_view base = name;
  while (!base.empty() && base.back() >= '0' && base.back() <= '9') base.remove_suffix(1);
  if (base.size() < name.size() && base.ends_with('_'))
    base.remove_suffix(1);
  else
    base = name;
  for (const std::string_view suffix : kSuffixes)
    if (base.ends_with(suffix)) return base.substr(0, base.size() - suffix.size());
  return {};
}

std::string original_name(const Value &constant) { return constant.origin.empty() ? constant.name : constant.origin; }

ValueId find_constant(const Graph &g, const std::string &who, const std::string &name) {
  const std::vector<ValueId> constants = used_constants(g);
  std::vector<std::string_view> names, made;
  ValueId only = kNoValue;
  for (const ValueId v : constants) {
    const Value &value = g.value(v);
    if (value.name == name) return v;
    names.push_back(value.name);
    if (!comes_from(value.name, name) && !comes_from(value.origin, name)) continue;
    made.push_back(value.name);
    only = v;
  }
  if (made.size() == 1) return only;
  std::string list;
  for (const std::string_view n : made) list += cat(" ", n);
  if (made.size() > 1) fail(QTN_EINVAL, who, ": several tensors come from \"", name, "\":", list);
  fail(QTN_EINVAL, who, ": the model has no tensor \"", name, "\"", nearest(name, names));
}

Tensor constant_tensor(const Graph &g, ValueId v) {
  const Tensor &constant = g.value(v).constant;
  const DynamicWeights weights = constant.quantized() ? DynamicWeights{} : dynamic_weights(g, v);
  const Tensor copy = constant.clone();
  return weights.products.empty() ? copy : copy.with_quantizer(quantizer_of(g, weights, copy.dtype()));
}

void set_constant_tensor(Graph &g, const std::string &who, const std::string &name, const Tensor &t) {
  const ValueId v = find_constant(g, who, name);
  Value &value = g.value(v);
  const Tensor &old = value.constant;
  const std::string what = cat(who, ": tensor \"", value.name, "\"");
  const DynamicWeights weights = old.quantized() ? DynamicWeights{} : dynamic_weights(g, v);
  const bool quantized = old.quantized() || !weights.products.empty();
  if (!quantized && old.dtype() != QTN_FLOAT32)
    fail(QTN_EUNSUPPORTED, what, " is of plain ", dtype_name(old.dtype()),
         "; float32 and quantized tensors can be set");
  const auto differ = [&](qstatus status) {
    fail(status, what, " is ", described(constant_tensor(g, v)), ", t is ", described(t));
  };
  if (quantized != t.quantized() || old.dtype() != t.dtype()) differ(QTN_EDTYPE);
  if (old.shape() != t.shape()) differ(QTN_ESHAPE);
  if (!weights.products.empty()) return set_dynamic(g, what, v, weights, t);
  const QuantizerPtr q = t.quantized() ? in_files(*t.quantizer()) : nullptr;
  Tensor made = t.clone().with_quantizer(q), before = old;
  QuantizerPtr quantizer_before = value.quantizer;
  const std::vector<ops::TensorType> types = output_types(g);
  const auto put = [&](Tensor &constant, QuantizerPtr quantizer) {
    std::swap(value.constant, constant);
    value.quantizer = std::move(quantizer);
  };
  put(made, q);
  try {
    if (!same_types(types, output_types(g))) fail(QTN_EUNSUPPORTED, what, " says shapes, which t would change");
  } catch (...) {
    put(before, std::move(quantizer_before));
    throw;
  }
}

}  // namespace qtn::graph
