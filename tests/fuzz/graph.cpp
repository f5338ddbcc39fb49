// SPDX-License-Identifier: Apache-2.0
// Graphs that bytes describe. What each node gives by itself is known; the session must give the same.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "growing.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

/// Whether arithmetic follows a layer, in whatever order its results are then, whose weights and bias take the constants
/// of it with another rounding.
bool extends_layers(const OnnxGraph &graph) {
  static const std::set<std::string> kLayers{"Conv", "ConvTranspose", "Gemm", "MatMul"},
      kArithmetic{"Add", "Sub", "Mul", "Div"},
      kMoving{"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast", "Expand"};
  std::set<std::string> made;
  for (const Node &node : graph.nodes) {
    const bool follows = std::ranges::any_of(node.inputs, [&](const auto &x) { return made.contains(x); });
    if (kArithmetic.contains(node.op) && follows) return true;
    if (kLayers.contains(node.op) || (kMoving.contains(node.op) && follows))
      made.insert(node.outputs.begin(), node.outputs.end());
  }
  return false;
}

/// Whether a product is one operator with the gate that it multiplies by, as x Sigmoid(x) is Swish, and is rounded once.
bool names_gates(const OnnxGraph &graph) {
  std::set<std::string> gates;
  for (const Node &node : graph.nodes) {
    if (node.op == "Sigmoid" || node.op == "HardSigmoid") gates.insert(node.outputs.begin(), node.outputs.end());
    if (node.op == "Mul" && std::ranges::any_of(node.inputs, [&](const auto &x) { return gates.contains(x); }))
      return true;
  }
  return false;
}

/// Whether an operator on integers has constants alone, which are taken for the floats that they stand for, and rounded
/// once.
bool folds_integers(const OnnxGraph &graph) {
  std::set<std::string> given;
  for (const NamedTensor &input : graph.inputs) given.insert(input.name);
  for (const Node &node : graph.nodes) {
    if (std::ranges::any_of(node.inputs, [&](const auto &x) { return given.contains(x); }))
      given.insert(node.outputs.begin(), node.outputs.end());
    else if (node.op.starts_with("QLinear"))
      return true;
  }
  return false;
}

/// Whether integers that a QLinear operator reads on a grid are read elsewhere, too: there they are numbers or on another
/// grid, and the network computes on floats between.
bool shares_integers(const OnnxGraph &graph) {
  std::map<std::string, int> readers;
  for (const Node &node : graph.nodes)
    for (const std::string &input : node.inputs) ++readers[input];
  return std::ranges::any_of(graph.nodes, [&](const Node &node) {
    return node.op.starts_with("QLinear") &&
           (readers[node.inputs[0]] > 1 || (node.inputs.size() > 3 && readers[node.inputs[3]] > 1));
  });
}

/// Whether nodes one by one have the bits of the whole: there they have other roundings, and older ones other meanings;
/// networks of other floats may compute on float32.
bool is_plain(const OnnxGraph &graph) {
  const auto is_other = [](const NamedTensor &t) {
    const qdtype dtype = qtensor_dtype(t.tensor);
    return dtype == QTN_FLOAT64 || dtype == QTN_FLOAT16 || dtype == QTN_BFLOAT16;
  };
  for (const auto *list : {&graph.inputs, &graph.constants})
    if (std::any_of(list->begin(), list->end(), is_other)) return false;
  static constexpr const char *kOthers[] = {"QuantizeLinear", "DequantizeLinear", "BatchNormalization"};
  return graph.opset >= 21 && !extends_layers(graph) && !names_gates(graph) && !folds_integers(graph) &&
         !shares_integers(graph) && std::none_of(graph.nodes.begin(), graph.nodes.end(), [](const Node &node) {
           return std::find(std::begin(kOthers), std::end(kOthers), node.op) != std::end(kOthers);
         });
}

/// What moves its results by little where its operands move by little; an RNN, which has no gates, moves them by more at
/// every step.
constexpr const char *kCalm[] = {
    "Add",     "Attention", "AveragePool", "Clip", "Concat",  "Conv",      "ConvTranspose", "Expand",
    "Flatten", "GRU",       "Gather",      "Gelu", "Gemm",    "LSTM",      "LeakyRelu",     "MatMul",
    "MaxPool", "Neg",       "Mul",         "Pad",  "Relu",    "Reshape",   "Sigmoid",       "Slice",
    "Softmax", "Split",     "Squeeze",     "Sub",  "Tanh",    "Transpose", "Unsqueeze",     "GlobalAveragePool",
    "Swish",   "HardSwish", "ReduceMean",  "Erf",  "Identity"};

/// Where sums of floats decide nothing, the engines differ by their rounding and nothing else.
void check_close(const qmodel *m, const std::vector<Tensor> &inputs, const Answer &want) {
  const Answer got = run(m, "native", inputs);
  if (got.status != QTN_OK) return;
  for (std::size_t i = 0; i < got.outputs.size(); ++i) {
    const Tensor a = make<Tensor>(qtensor_contiguous, got.outputs[i].get());
    const Tensor b = make<Tensor>(qtensor_contiguous, want.outputs[i].get());
    if (qtensor_dtype(a.get()) != QTN_FLOAT32) continue;
    const auto *x = static_cast<const float *>(qtensor_data(a.get())),
               *y = static_cast<const float *>(qtensor_data(b.get()));
    for (std::int64_t k = 0; k < qtensor_numel(a.get()); ++k)
      require(x[k] == y[k] || (std::isnan(x[k]) && std::isnan(y[k])) || std::abs(x[k] - y[k]) <= 1e-2F,
              "native and reference, floats: output " + std::to_string(i) + ", element " + std::to_string(k) + " is " +
                  std::to_string(x[k]) + " and " + std::to_string(y[k]));
  }
}

void test(const std::uint8_t *data, std::size_t size) {
  Bytes bytes(data, size);
  Growing growing(bytes);
  const Model model = growing.model();
  if (!model) return;
  const OnnxGraph &graph = growing.graph();
  Dice dice(seed_of(data, size));
  const Answer answer = run(model.get(), "reference", growing.inputs());
  if (answer.status == QTN_OK && is_plain(graph))
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      std::string difference;
      if (!same_bits(answer.outputs[i].get(), graph.outputs[i].tensor, &difference))
        fail("a run and its nodes one by one: " + graph.outputs[i].name + ": " + difference);
    }
  if (answer.status == QTN_OK && graph.opset >= 21 && growing.consists_of(kCalm, 30))
    check_close(model.get(), growing.inputs(), answer);
  check_model(model.get(), dice);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
