// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime's optimizer and quantizer leave in a file under a name of their own: operators that ONNX has too,
// sums with what reads them, layers of integers on images whose channels come last, and Where on integers.
#include "onnx/composing.hpp"
#include "ops/op.hpp"

namespace qtn::onnx {
namespace {

/// The operator of that name in ONNX's domain.
bool same(Composing &c) {
  c.add(c.node().op.c_str(), c.node().inputs, c.attrs(), Names(1, c.out(0)));
  return true;
}

/// Inputs x, skip, scale, shift and bias; outputs y, mean and inverse deviation of each row, and the sum of x, skip and
/// bias. The simplified form has neither shift nor mean.
bool skip_normalization(Composing &c) {
  const bool is_simplified = c.node().op != "SkipLayerNormalization";
  const std::string bias = c.in(is_simplified ? 3 : 4);
  std::string sum = c.one("Add", {c.in(0), c.in(1)}, {}, bias.empty() ? c.out(3) : "");
  if (!bias.empty()) sum = c.one("Add", {sum, bias}, {}, c.out(3));
  Names inputs{sum, c.in(2)}, outputs{c.out(0), c.out(1), c.out(2)};
  if (is_simplified && !c.out(1).empty()) c.refuse("the mean is not computed");
  if (is_simplified) outputs.erase(outputs.begin() + 1);
  if (!is_simplified && !c.in(3).empty()) inputs.push_back(c.in(3));
  while (outputs.size() > 1 && outputs.back().empty()) outputs.pop_back();
  c.add(is_simplified ? "SimplifiedLayerNormalization" : "LayerNormalization", std::move(inputs),
        with("axis", std::int64_t{-1}, "epsilon", c.attrs().get_float("epsilon", 1e-12)), std::move(outputs));
  return true;
}

/// Gelu of x and a bias, by tanh where it is fast.
bool gelu_of_sum(Composing &c) {
  const std::string sum = c.in(1).empty() ? c.in(0) : c.one("Add", {c.in(0), c.in(1)});
  const bool is_fast = c.node().op == "FastGelu";
  c.one("Gelu", {sum}, is_fast ? with("approximate", std::string("tanh")) : Attrs(), c.out(0));
  return true;
}

/// An operator whose first input and output have images of so many axes.
bool with_channels_first(Composing &c, const char *op, std::size_t rank, const char *domain = "") {
  Names inputs = c.node().inputs;
  if (inputs.empty()) inputs.emplace_back();
  inputs[0] = channels_first(c, inputs[0], rank);
  const Names y = c.add(op, std::move(inputs), without(c.attrs(), {"channels_last"}), Names(1), domain);
  channels_last(c, y[0], rank, c.out(0));
  return true;
}

bool has_channels_last(Composing &c) { return c.attrs().get_int("channels_last", 0) != 0; }

bool conv_of_integers(Composing &c) {
  return has_channels_last(c) ? with_channels_first(c, "QLinearConv", rank_of_images(c, c.in(3))) : same(c);
}

std::size_t rank_of_pool(Composing &c) { return c.attrs().get_ints("kernel_shape").size() + 2; }

bool max_pool(Composing &c) { return with_channels_first(c, "MaxPool", rank_of_pool(c)); }

bool average_pool(Composing &c) {
  return has_channels_last(c) && with_channels_first(c, "QLinearAveragePool", rank_of_pool(c), ops::kMicrosoft);
}

/// Pictures, where the file does not say its shape.
bool global_average_pool(Composing &c) {
  const std::optional<Shape> shape = c.shape(c.in(0));
  return has_channels_last(c) &&
         with_channels_first(c, "QLinearGlobalAveragePool", shape ? shape->size() : 4, ops::kMicrosoft);
}

/// Inputs condition, x, y, each followed by its scale and zero point, and those of the result.
bool where_of_integers(Composing &c) {
  c.formula("DequantizeLinear b c d;DequantizeLinear e f g;Where a A B;QuantizeLinear C h i",
            {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.in(5), c.in(6), c.in(7), c.in(8)}, c.out(0));
  return true;
}

}  // namespace

std::string channels_first(Composing &c, const std::string &x, std::size_t rank) {
  std::vector<std::int64_t> perm{0, static_cast<std::int64_t>(rank) - 1};
  for (std::int64_t i = 1; i + 1 < static_cast<std::int64_t>(rank); ++i) perm.push_back(i);
  return c.one("Transpose", {x}, with("perm", perm));
}

std::string channels_last(Composing &c, const std::string &x, std::size_t rank, std::string output) {
  std::vector<std::int64_t> perm{0};
  for (std::int64_t i = 2; i < static_cast<std::int64_t>(rank); ++i) perm.push_back(i);
  perm.push_back(1);
  return c.one("Transpose", {x}, with("perm", perm), std::move(output));
}

std::size_t rank_of_images(Composing &c, const std::string &weights) {
  const std::optional<Shape> shape = c.shape(weights);
  if (!shape || shape->size() < 3) c.refuse("the number of axes of its weights must be known, and at least 3");
  return shape->size();
}

const std::vector<ComposedRule> kOptimizedRules{
    {ops::kMicrosoft, "SkipLayerNormalization", skip_normalization},
    {ops::kMicrosoft, "SkipSimplifiedLayerNormalization", skip_normalization},
    {ops::kMicrosoft, "BiasGelu", gelu_of_sum},
    {ops::kMicrosoft, "FastGelu", gelu_of_sum},
    {ops::kMicrosoft, "Gelu", same},
    {ops::kMicrosoft, "GatherND", same},
    {ops::kMicrosoft, "GridSample", same},
    {ops::kMicrosoft, "Range", same},
    {ops::kMicrosoft, "Trilu", same},
    {ops::kMicrosoft, "QLinearAveragePool", average_pool},
    {ops::kMicrosoft, "QLinearConv", conv_of_integers},
    {ops::kMicrosoft, "QLinearGlobalAveragePool", global_average_pool},
    {ops::kMicrosoft, "NhwcMaxPool", max_pool},
    {ops::kMicrosoft, "QLinearWhere", where_of_integers}};

}  // namespace qtn::onnx
