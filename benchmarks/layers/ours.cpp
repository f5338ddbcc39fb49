// SPDX-License-Identifier: Apache-2.0
// A graph of one node, lowered as in a session; what is timed is all between the conversions from and to float.
#include <limits>

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "layer.hpp"
#include "runtime/plan.hpp"

namespace qtn::layers {
namespace {

QuantizerPtr per_tensor(float scale) {
  return std::make_shared<Quantizer>(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, std::vector<double>{scale},
                                     std::vector<std::int64_t>{0}, Numerics::onnx);
}

graph::Value activation(const char *name, const Shape &shape, float scale) {
  graph::Value v;
  v.name = name;
  v.dtype = QTN_FLOAT32;
  v.shape = shape;
  v.quantizer = per_tensor(scale);
  return v;
}

graph::Graph one_node(const Layer &layer, const Problem &problem) {
  const bool product = layer.is_product();
  graph::Graph g;
  const Shape x = product ? Shape{layer.rows, layer.in} : Shape{1, layer.in, layer.size, layer.size};
  const Shape y = product ? Shape{layer.rows, layer.out} : Shape{1, layer.out, layer.out_size(), layer.out_size()};
  const Shape w =
      product ? Shape{layer.out, layer.in} : Shape{layer.out, layer.in / layer.groups, layer.kernel, layer.kernel};
  g.inputs = {g.add_value(activation("x", x, problem.x_scale))};
  g.outputs = {g.add_value(activation("y", y, problem.y_scale))};

  const QuantizerPtr quantizer = std::make_shared<Quantizer>(
      QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 0, std::vector<double>(problem.w_scale.begin(), problem.w_scale.end()),
      std::vector<std::int64_t>(problem.w_scale.size(), 0), Numerics::onnx);
  Tensor weight = Tensor::from<std::int8_t>(QTN_INT8, w, problem.w).with_quantizer(quantizer);
  const graph::ValueId weights = g.add_constant("w", std::move(weight));
  g.value(weights).quantizer = quantizer;
  Tensor bias(QTN_FLOAT32, {layer.out});
  for (std::size_t o = 0; o < problem.bias.size(); ++o)
    bias.as<float>()[o] = static_cast<float>(problem.bias[o]) * problem.x_scale * problem.w_scale[o];

  graph::Node node{"layer", ops::find_op(product ? "Gemm" : "Conv"), {}, {}, {}, {}};
  if (product) {
    node.attrs.set("transB", std::int64_t{1});
  } else {
    const auto ints = [](std::size_t count, std::int64_t value) { return std::vector<std::int64_t>(count, value); };
    node.attrs.set("pads", ints(4, layer.pad()));
    node.attrs.set("strides", ints(2, layer.stride));
    node.attrs.set("group", layer.groups);
  }
  node.inputs = {g.inputs[0], weights, g.add_constant("bias", std::move(bias))};
  node.outputs = {g.outputs[0]};
  node.clamp = ops::Clamp{0, std::numeric_limits<float>::infinity()};
  g.nodes.push_back(std::move(node));
  return g;
}

class Ours final : public Engine {
 public:
  Ours(const Layer &layer, const Problem &problem) : graph_(one_node(layer, problem)) {
    const auto types = *graph::declared_input_types(graph_, 1);
    plan_ = runtime::lower(graph_, types, {}, isa(), weights_, {});
    context_ = runtime::make_context(plan_, 1);
    Tensor x(QTN_FLOAT32, types[0].shape);
    for (std::size_t i = 0; i < problem.x.size(); ++i)
      x.as<float>()[i] = static_cast<float>(problem.x[i]) * problem.x_scale;
    context_->tensors[static_cast<std::size_t>(plan_.inputs[0])] = x;
    plan_.steps.front()->run(*context_);
    std::int64_t macs = 0;
    for_steps([&](const runtime::Step &step) { macs += step.macs; });
    if (macs != layer.macs())
      fail(QTN_EINTERNAL, layer.name(), ": the plan has ", macs, " products, not ", layer.macs());
  }

  void run() override {
    for_steps([&](const runtime::Step &step) { step.run(*context_); });
  }

  std::vector<std::uint8_t> result() const override {
    const runtime::SlotId y = plan_.steps.back()->reads[0];
    const Tensor q = context_->tensor(y).to_contiguous();
    return {q.as<std::uint8_t>(), q.as<std::uint8_t>() + q.count()};
  }

  std::string kernel() const override {
    std::string names;
    for_steps([&](const runtime::Step &step) { names += (names.empty() ? "" : "+") + step.kernel; });
    return names;
  }

 private:
  template <class Body>
  void for_steps(Body &&body) const {
    for (std::size_t i = 1; i + 1 < plan_.steps.size(); ++i) body(*plan_.steps[i]);
  }

  graph::Graph graph_;
  runtime::Weights weights_{std::numeric_limits<std::size_t>::max()};
  runtime::Plan plan_;
  std::unique_ptr<runtime::Context> context_;
};

}  // namespace

std::unique_ptr<Engine> make_ours(const Layer &layer, const Problem &problem) {
  return std::make_unique<Ours>(layer, problem);
}

}  // namespace qtn::layers
