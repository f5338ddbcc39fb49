// SPDX-License-Identifier: Apache-2.0
#include "onnx/dynamic_function.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "ops/common/dynamic_quantizer.hpp"

namespace qtn::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr ops::OwnGrid kGrids[] = {{Numerics::fbgemm}, {Numerics::qnnpack}, {.granularity = ops::Granularity::row}};

struct Constant {
  const char *name;
  float value;
};

/// float32 throughout: readers may take constants in double for floats. That of "highest32" depends on the numerics.
constexpr Constant kTorchConstants[] = {{"zero", 0},
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
constexpr Step kTorchSteps[] = {{"Cast", "zero", "none", QTN_FLOAT64},
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

constexpr Constant kRowConstants[] = {
    {"zero", 0}, {"one", 1}, {"highest", 255}, {"smallest", 0x1p-126f}  // below it, rows have scale 1
};

/// DynamicQuantizeLinear of each row: "last" is the axis.
constexpr Step kRowSteps[] = {{"ReduceMin", "x last", "least"},
                              {"ReduceMax", "x last", "most"},
                              {"Min", "least zero", "min"},
                              {"Max", "most zero", "max"},
                              {"Div", "max highest", "above"},
                              {"Div", "min highest", "below"},
                              {"Sub", "above below", "wide_step"},  // the difference of the ends may overflow
                              {"Sub", "max min", "range"},
                              {"IsInf", "range", "is_wide"},
                              {"Div", "range highest", "range_step"},
                              {"Where", "is_wide wide_step range_step", "step"},
                              {"Less", "wide_step smallest", "is_flat"},
                              {"Where", "is_flat one step", "y_scale"},
                              {"Div", "min y_scale", "steps_below"},
                              {"Neg", "steps_below", "exact_zero"},
                              {"Clip", "exact_zero zero highest", "inside_zero"},
                              {"Round", "inside_zero", "real_zero"},
                              {"Cast", "real_zero", "y_zero_point", QTN_UINT8},
                              {"Div", "x y_scale", "steps"},
                              {"Round", "steps", "rounded"},
                              {"Add", "rounded real_zero", "moved"},
                              {"Clip", "moved zero highest", "inside"},
                              {"Cast", "inside", "y", QTN_UINT8}};

struct Formula {
  std::span<const Constant> constants;
  std::span<const Step> steps;
};

Formula formula_of(const ops::OwnGrid &grid) {
  if (grid.granularity == ops::Granularity::row) return {kRowConstants, kRowSteps};
  return {kTorchConstants, kTorchSteps};
}

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

std::optional<ops::OwnGrid> function_grid(const Node &node) {
  if (node.op != &ops::kDynamicQuantizeLinear && node.op != &ops::kDynamicQuantizeMatMul) return std::nullopt;
  const ops::OwnGrid grid = ops::own_grid(node.op->name, node.attrs);
  if (grid == ops::OwnGrid{}) return std::nullopt;
  if (node.op == &ops::kDynamicQuantizeMatMul)
    fail(QTN_EUNSUPPORTED, "node \"", node.name, "\" (", node.op->name, "): files have no such product under ",
         numerics_name(grid.numerics), " numerics", grid.granularity == ops::Granularity::row ? " by row" : "",
         "; under those of onnx per tensor they have");
  return grid;
}

std::string function_name(const ops::OwnGrid &grid) {
  return cat("DynamicQuantizeLinear_",
             grid.granularity == ops::Granularity::row ? "row" : numerics_name(grid.numerics));
}

std::optional<ops::OwnGrid> function_grid(const std::string &domain, const std::string &name) {
  for (const ops::OwnGrid &grid : kGrids)
    if (domain == kFunctionDomain && name == function_name(grid)) return grid;
  return std::nullopt;
}

Graph function_body(const ops::OwnGrid &grid) {
  const auto [constants, steps] = formula_of(grid);
  const bool rows = grid.granularity == ops::Granularity::row;
  Graph g;
  for (const auto &[name, number] : constants) {
    graph::Value value;
    value.name = name;
    value.constant = Tensor::scalar(value.name == "highest32" && grid.numerics == Numerics::fbgemm ? 127 : number);
    value.dtype = QTN_FLOAT32;
    value.shape = Shape{};
    g.add_value(std::move(value));
  }
  if (rows) g.add_constant("last", Tensor::from<std::int64_t>(QTN_INT64, {1}, std::vector<std::int64_t>{-1}));
  for (const Step &step : steps) {
    Node node{step.output, ops::find_op(step.op), {}, values_named(g, step.inputs), values_named(g, step.output), {}};
    if (step.to != 0) node.attrs.set("to", std::int64_t{step.to});
    if (node.op == &ops::kReduceMin || node.op == &ops::kReduceMax) node.attrs.set("keepdims", std::int64_t{rows});
    g.nodes.push_back(std::move(node));
  }
  g.inputs = values_named(g, "x");
  g.outputs = values_named(g, "y y_scale y_zero_point");
  return g;
}

}  // namespace qtn::onnx
