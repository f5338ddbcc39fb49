// SPDX-License-Identifier: Apache-2.0
#include "onnx/dynamic_function.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr Numerics kNumerics[] = {Numerics::fbgemm, Numerics::qnnpack};

struct Constant {
  const char *name;
  float value;
};

/// float32 throughout: readers may take constants in double for floats. That of "highest32" depends on the numerics.
constexpr Constant kConstants[] = {{"zero", 0},
                                   {"one", 1},
                                   {"without_inverse", 0x1p-128f},  // the largest whose inverse is infinite
                                   {"highest32", 255},
                                   {"of_nothing32", 0.1f},
                                   {"smallest32", 6.1e-5f}};

struct Step {
  const char *op, *inputs, *output;
  std::int32_t to = 0;  ///< of Cast
};

/// The formula of ops/common/dynamic_quantizer.cpp for uint8, whose zero point always comes from the lower end: what
/// the other would give is the same integer. 1 / scale is a Reciprocal, as ONNX Runtime makes a division of Div and
/// Mul.
constexpr Step kSteps[] = {{"Cast", "zero", "none", QTN_FLOAT64},
                           {"Cast", "highest32", "highest", QTN_FLOAT64},
                           {"Cast", "of_nothing32", "of_nothing", QTN_FLOAT64},
                           {"Cast", "smallest32", "smallest", QTN_FLOAT64},
                           {"ReduceMin", "x", "least"},
                           {"ReduceMax", "x", "most"},
                           {"Min", "least zero", "min"},
                           {"Max", "most zero", "max"},
                           {"Cast", "min", "min64", QTN_FLOAT64},
                           {"Cast", "max", "max64", QTN_FLOAT64},
                           {"Sub", "max64 min64", "range"},
                           {"Div", "range highest", "step64"},
                           {"Cast", "step64", "step", QTN_FLOAT32},
                           {"Greater", "step without_inverse", "inverts"},
                           {"Where", "inverts step64 of_nothing", "given64"},
                           {"Cast", "given64", "given", QTN_FLOAT32},
                           {"Max", "given64 smallest", "scale64"},
                           {"Cast", "scale64", "y_scale", QTN_FLOAT32},
                           {"Div", "y_scale given", "gain"},  // 1 except for small scales
                           {"Mul", "min gain", "grown"},
                           {"Cast", "grown", "grown64", QTN_FLOAT64},
                           {"Div", "grown64 scale64", "below"},
                           {"Neg", "below", "above"},
                           {"Clip", "above none highest", "inside"},
                           {"Round", "inside", "rounded"},
                           {"Cast", "rounded", "y_zero_point", QTN_UINT8},
                           {"Reciprocal", "y_scale", "inverse"},
                           {"Mul", "x inverse", "steps"},
                           {"QuantizeLinear", "steps one y_zero_point", "y"}};

/// The values of a list of names with spaces between; a value is made where it is first named.
std::vector<ValueId> values_named(Graph &g, std::string_view names) {
  std::vector<ValueId> ids;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    const auto known =
        std::find_if(g.values.begin(), g.values.end(), [&](const graph::Value &v) { return v.name == name; });
    ids.push_back(static_cast<ValueId>(known - g.values.begin()));
    if (known == g.values.end()) g.values.emplace_back().name = name;
  }
  return ids;
}

}  // namespace

std::optional<Numerics> function_numerics(const Node &node) {
  if (node.op != &ops::kDynamicQuantizeLinear && node.op != &ops::kDynamicQuantizeMatMul) return std::nullopt;
  const Numerics numerics = ops::dynamic_numerics(node.op->name, node.attrs);
  if (numerics == Numerics::onnx) return std::nullopt;
  if (node.op == &ops::kDynamicQuantizeMatMul)
    fail(QTN_EUNSUPPORTED, "node \"", node.name, "\" (", node.op->name, "): files have no such product under ",
         numerics_name(numerics), " numerics; under those of onnx they have");
  return numerics;
}

std::string function_name(Numerics numerics) { return cat("DynamicQuantizeLinear_", numerics_name(numerics)); }

std::optional<Numerics> function_numerics(const std::string &domain, const std::string &name) {
  for (const Numerics numerics : kNumerics)
    if (domain == kFunctionDomain && name == function_name(numerics)) return numerics;
  return std::nullopt;
}

Graph function_body(Numerics numerics) {
  Graph g;
  for (const auto &[name, number] : kConstants) {
    graph::Value value;
    value.name = name;
    value.constant = Tensor::scalar(value.name == "highest32" && numerics == Numerics::fbgemm ? 127 : number);
    value.dtype = QTN_FLOAT32;
    value.shape = Shape{};
    g.add_value(std::move(value));
  }
  for (const Step &step : kSteps) {
    Node node{step.output, ops::find_op(step.op), {}, values_named(g, step.inputs), values_named(g, step.output), {}};
    if (step.to != 0) node.attrs.set("to", std::int64_t{step.to});
    if (node.op == &ops::kReduceMin || node.op == &ops::kReduceMax) node.attrs.set("keepdims", std::int64_t{0});
    g.nodes.push_back(std::move(node));
  }
  g.inputs = values_named(g, "x");
  g.outputs = values_named(g, "y y_scale y_zero_point");
  return g;
}

}  // namespace qtn::onnx
