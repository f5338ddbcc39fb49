// SPDX-License-Identifier: Apache-2.0
#include "onnx/own_functions.hpp"

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

/// What rows of x have to be divided by, for 255 integers: "last" is the axis.
constexpr Step kRowRange[] = {{"ReduceMin", "x last", "least"},
                              {"ReduceMax", "x last", "most"},
                              {"Min", "least zero", "min"},
                              {"Max", "most zero", "max"},
                              {"Div", "max highest", "above"},
                              {"Div", "min highest", "below"},
                              {"Sub", "above below", "wide_step"},  // the difference of the ends may overflow
                              {"Sub", "max min", "range"},
                              {"IsInf", "range", "is_wide"},
                              {"Div", "range highest", "range_step"},
                              {"Where", "is_wide wide_step range_step", "step"}};

/// DynamicQuantizeLinear of each row, behind its range.
constexpr Step kRowSteps[] = {{"Less", "wide_step smallest", "is_flat"},
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

constexpr Constant kProductConstants[] = {
    {"zero", 0}, {"one", 1}, {"highest", 255}, {"highest_b", 127}, {"smallest", 0x1p-126f}};

/// The formulas of ops/quantization/dynamicmatmul.cpp for x and b, behind the range of x: "last" and "first" are the axes of columns and rows. No value is
/// named "centered_...": behind the name of one function that is what a value of the other is called where readers put
/// bodies in the place of calls.
constexpr Step kProductSteps[] = {{"Less", "step smallest", "a_is_flat"},
                                  {"Where", "a_is_flat one step", "a_scale"},
                                  {"Reciprocal", "a_scale", "a_inverse"},
                                  {"Mul", "min a_inverse", "steps_below"},
                                  {"Neg", "steps_below", "exact_zero"},
                                  {"Clip", "exact_zero zero highest", "inside_zero"},
                                  {"Round", "inside_zero", "a_zero"},
                                  {"Mul", "x a_inverse", "a_steps"},
                                  {"Round", "a_steps", "a_rounded"},
                                  {"Add", "a_rounded a_zero", "a_moved"},
                                  {"Clip", "a_moved zero highest", "a_inside"},
                                  {"Cast", "a_inside", "a_integers", QTN_UINT8},
                                  {"Abs", "b_used", "b_size"},
                                  {"ReduceMax", "b_size first", "peak"},
                                  {"Div", "peak highest_b", "b_step"},
                                  {"Less", "b_step smallest", "b_is_flat"},
                                  {"Where", "b_is_flat one b_step", "b_scale"},
                                  {"Reciprocal", "b_scale", "b_inverse"},
                                  {"Mul", "b_used b_inverse", "b_steps"},
                                  {"Round", "b_steps", "b_rounded"},
                                  {"Cast", "b_rounded", "b_integers", QTN_INT8},
                                  {"MatMulInteger", "a_integers b_integers", "sums"},
                                  {"Cast", "b_integers", "b_wide", QTN_INT32},
                                  {"ReduceSum", "b_wide first", "column_sums"},
                                  {"Cast", "a_zero", "zeros", QTN_INT32},
                                  {"Mul", "zeros column_sums", "of_zeros"},
                                  {"Sub", "sums of_zeros", "own_sums"},
                                  {"Cast", "own_sums", "real_sums", QTN_FLOAT32},
                                  {"Mul", "a_scale b_scale", "scales"},
                                  {"Mul", "real_sums scales", "y"}};
constexpr Step kCenter[] = {{"ReduceMean", "b last", "mean"}, {"Sub", "b mean", "b_used"}};
constexpr Step kDoNotCenter[] = {{"Identity", "b", "b_used"}};

struct Function {
  const char *name;
  const ops::OpDef &op;
  std::span<const Constant> constants;
  std::vector<std::span<const Step>> steps;
  const char *inputs, *outputs;
  bool keeps_axes;        ///< of reductions
  ops::OwnGrid grid{};    ///< of DynamicQuantizeLinear
  bool centered = false;  ///< DynamicMatMul
};

const std::vector<Function> &functions() {
  constexpr const char *kOnGrid = "y y_scale y_zero_point";
  static const std::vector<Function> all = {{"DynamicQuantizeLinear_fbgemm",
                                             ops::kDynamicQuantizeLinear,
                                             kTorchConstants,
                                             {kTorchSteps},
                                             "x",
                                             kOnGrid,
                                             false,
                                             {Numerics::fbgemm}},
                                            {"DynamicQuantizeLinear_qnnpack",
                                             ops::kDynamicQuantizeLinear,
                                             kTorchConstants,
                                             {kTorchSteps},
                                             "x",
                                             kOnGrid,
                                             false,
                                             {Numerics::qnnpack}},
                                            {"DynamicQuantizeLinear_row",
                                             ops::kDynamicQuantizeLinear,
                                             kRowConstants,
                                             {kRowRange, kRowSteps},
                                             "x",
                                             kOnGrid,
                                             true,
                                             {.granularity = ops::Granularity::row}},
                                            {"DynamicMatMul",
                                             ops::kDynamicMatMul,
                                             kProductConstants,
                                             {kDoNotCenter, kRowRange, kProductSteps},
                                             "x b",
                                             "y",
                                             true},
                                            {"DynamicMatMul_centered",
                                             ops::kDynamicMatMul,
                                             kProductConstants,
                                             {kCenter, kRowRange, kProductSteps},
                                             "x b",
                                             "y",
                                             true,
                                             {},
                                             true}};
  return all;
}

const Function *find(const std::string &name) {
  const auto &all = functions();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Function &f) { return name == f.name; });
  return found == all.end() ? nullptr : &*found;
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

std::optional<std::string> function_of(const Node &node) {
  if (node.op == &ops::kDynamicMatMul)
    return node.attrs.get_int(ops::kCenteredAttr, 0) != 0 ? "DynamicMatMul_centered" : "DynamicMatMul";
  if (node.op != &ops::kDynamicQuantizeLinear && node.op != &ops::kDynamicQuantizeMatMul) return std::nullopt;
  const ops::OwnGrid grid = ops::own_grid(node.op->name, node.attrs);
  if (grid == ops::OwnGrid{}) return std::nullopt;
  const bool rows = grid.granularity == ops::Granularity::row;
  if (node.op == &ops::kDynamicQuantizeMatMul)
    fail(QTN_EUNSUPPORTED, "node \"", node.name, "\" (", node.op->name, "): files have no such product under ",
         numerics_name(grid.numerics), " numerics", rows ? " by row" : "",
         "; under those of onnx per tensor they have");
  return cat("DynamicQuantizeLinear_", rows ? "row" : numerics_name(grid.numerics));
}

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const Function &f : functions()) names.emplace_back(f.name);
  return names;
}

std::optional<FunctionMeaning> function_meaning(const std::string &domain, const std::string &name) {
  const Function *f = domain == ops::kOwnDomain ? find(name) : nullptr;
  if (!f) return std::nullopt;
  FunctionMeaning meaning{&f->op, {}};
  if (f->centered) meaning.attrs.set(ops::kCenteredAttr, std::int64_t{1});
  if (f->op.name == ops::kDynamicQuantizeLinear.name) ops::set_own_grid(meaning.attrs, f->grid);
  return meaning;
}

std::vector<const ops::OpDef *> function_operators(const std::string &name) {
  std::vector<const ops::OpDef *> operators;
  for (const std::span<const Step> steps : find(name)->steps)
    for (const Step &step : steps) operators.push_back(ops::find_op(step.op));
  return operators;
}

Graph function_body(const std::string &name) {
  const Function &f = *find(name);
  Graph g;
  for (const auto &[constant, number] : f.constants) {
    graph::Value value;
    value.name = constant;
    value.constant = Tensor::scalar(value.name == "highest32" && f.grid.numerics == Numerics::fbgemm ? 127 : number);
    value.dtype = QTN_FLOAT32;
    value.shape = Shape{};
    g.add_value(std::move(value));
  }
  for (const auto &[axis, at] : {std::pair{"last", -1}, {"first", -2}})
    if (f.keeps_axes) g.add_constant(axis, Tensor::from<std::int64_t>(QTN_INT64, {1}, std::vector<std::int64_t>{at}));
  for (const std::span<const Step> steps : f.steps)
    for (const Step &step : steps) {
      Node node{step.output, ops::find_op(step.op), {}, values_named(g, step.inputs), values_named(g, step.output), {}};
      if (step.to != 0) node.attrs.set("to", std::int64_t{step.to});
      if (std::string_view(step.op).starts_with("Reduce")) node.attrs.set("keepdims", std::int64_t{f.keeps_axes});
      g.nodes.push_back(std::move(node));
    }
  g.inputs = values_named(g, f.inputs);
  g.outputs = values_named(g, f.outputs);
  return g;
}

}  // namespace qtn::onnx
