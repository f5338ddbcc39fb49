// SPDX-License-Identifier: Apache-2.0
#include "onnx/dynamic_function.hpp"

#include <map>

#include "base/error.hpp"
#include "ops/dynamic_quantizer.hpp"

namespace qtn::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr Numerics kNumerics[] = {Numerics::fbgemm, Numerics::qnnpack};

/// Values by name, made where they are first spoken of.
class Body {
 public:
  ValueId operator[](const std::string &name) {
    const auto [at, is_new] = ids_.try_emplace(name);
    if (is_new) {
      graph::Value value;
      value.name = name;
      at->second = g_.add_value(std::move(value));
    }
    return at->second;
  }

  void constant(const std::string &name, Tensor constant) {
    graph::Value &value = g_.value((*this)[name]);
    value.dtype = constant.dtype();
    value.shape = constant.shape();
    value.constant = std::move(constant);
  }

  /// A float32 that is computed with in double: readers may take constants in double for floats.
  void wide_constant(const std::string &name, float value) {
    constant(name + "32", Tensor::scalar(value));
    cast(name + "32", QTN_FLOAT64, name);
  }

  void node(const ops::OpDef &op, const std::vector<std::string> &inputs, const std::string &output, Attrs attrs = {}) {
    Node node{output, &op, std::move(attrs), {}, {}, {}};
    for (const std::string &input : inputs) node.inputs.push_back((*this)[input]);
    node.outputs.push_back((*this)[output]);
    g_.nodes.push_back(std::move(node));
  }

  void cast(const std::string &input, qdtype to, const std::string &output) {
    Attrs attrs;
    attrs.set("to", std::int64_t{to});
    node(ops::kCast, {input}, output, std::move(attrs));
  }

  Graph made(const std::vector<std::string> &inputs, const std::vector<std::string> &outputs) {
    for (const std::string &name : inputs) g_.inputs.push_back((*this)[name]);
    for (const std::string &name : outputs) g_.outputs.push_back((*this)[name]);
    return std::move(g_);
  }

 private:
  Graph g_;
  std::map<std::string, ValueId> ids_;
};

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

/// The formula of ops/dynamic_quantizer.cpp for uint8, whose zero point always comes from the lower end: what the other
/// would give is the same integer. 1 / scale is a Reciprocal, as ONNX Runtime makes a division of Div and Mul.
Graph function_body(Numerics numerics) {
  Attrs whole;
  whole.set("keepdims", std::int64_t{0});
  Body body;
  body.constant("zero", Tensor::scalar(0));
  body.constant("one", Tensor::scalar(1));
  body.wide_constant("none", 0);
  body.wide_constant("highest", numerics == Numerics::fbgemm ? 127 : 255);
  body.constant("without_inverse", Tensor::scalar(0x1p-128f));  // the largest whose inverse is infinite
  body.wide_constant("of_nothing", 0.1f);
  body.wide_constant("smallest", 6.1e-5f);
  body.node(ops::kReduceMin, {"x"}, "least", whole);
  body.node(ops::kReduceMax, {"x"}, "most", whole);
  body.node(ops::kMin, {"least", "zero"}, "min");
  body.node(ops::kMax, {"most", "zero"}, "max");
  body.cast("min", QTN_FLOAT64, "min64");
  body.cast("max", QTN_FLOAT64, "max64");
  body.node(ops::kSub, {"max64", "min64"}, "range");
  body.node(ops::kDiv, {"range", "highest"}, "step64");
  body.cast("step64", QTN_FLOAT32, "step");
  body.node(ops::kGreater, {"step", "without_inverse"}, "inverts");
  body.node(ops::kWhere, {"inverts", "step64", "of_nothing"}, "given64");
  body.cast("given64", QTN_FLOAT32, "given");
  body.node(ops::kMax, {"given64", "smallest"}, "scale64");
  body.cast("scale64", QTN_FLOAT32, "y_scale");
  body.node(ops::kDiv, {"y_scale", "given"}, "gain");  // 1 but for small scales
  body.node(ops::kMul, {"min", "gain"}, "grown");
  body.cast("grown", QTN_FLOAT64, "grown64");
  body.node(ops::kDiv, {"grown64", "scale64"}, "below");
  body.node(ops::kNeg, {"below"}, "above");
  body.node(ops::kClip, {"above", "none", "highest"}, "inside");
  body.node(ops::kRound, {"inside"}, "rounded");
  body.cast("rounded", QTN_UINT8, "y_zero_point");
  body.node(ops::kReciprocal, {"y_scale"}, "inverse");
  body.node(ops::kMul, {"x", "inverse"}, "steps");
  body.node(ops::kQuantizeLinear, {"steps", "one", "y_zero_point"}, "y");
  return body.made({"x"}, {"y", "y_scale", "y_zero_point"});
}

}  // namespace qtn::onnx
