// SPDX-License-Identifier: Apache-2.0
// Operators run as ops/ defines them: float nodes, moved integers, and integer nodes that no kernel serves.
#include <algorithm>

#include "base/error.hpp"
#include "base/stack_memory.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class OperatorStep : public Step {
 public:
  OperatorStep(const graph::Node &graph_node, const OperandRefs &refs) : node_(graph_node), refs_(refs) {
    kernel = node_.op->name;
    for (const SlotId s : refs.inputs)
      if (s != kNoSlot) reads.push_back(s);
    for (const SlotId s : refs.outputs)
      if (s != kNoSlot) writes.push_back(s);
  }

 protected:
  /// What a registered operator fails with says which node it was.
  template <class Run>
  void run_named(const Run &run) const {
    if (!ops::as_custom(*node_.op)) return run();
    try {
      run();
    } catch (const Error &e) {
      fail(e.status(), "node \"", node_.name, "\": ", e.what());
    }
  }

  auto operands(const Context &c, StackMemory &memory) const {
    auto list = memory.list<const Tensor *>(refs_.inputs.size());
    std::ranges::transform(refs_.inputs, list.begin(), [&](SlotId s) { return s == kNoSlot ? nullptr : &c.tensor(s); });
    return list;
  }

  graph::Node node_;
  OperandRefs refs_;
};

class RunStep final : public OperatorStep {
 public:
  using OperatorStep::OperatorStep;

  void run(const Context &c) const override {
    StackMemory memory;
    auto outputs = memory.list<Tensor>(refs_.outputs.size());
    std::ranges::transform(refs_.outputs, outputs.begin(),
                           [&](SlotId s) { return s == kNoSlot ? Tensor() : c.tensor(s); });
    run_named([&] { ops::run_into(*node_.op, {node_.attrs, operands(c, memory), outputs.size()}, outputs); });
    if (node_.clamp) ops::clamp_elements(outputs[0], *node_.clamp);
  }
};

class DefinitionStep final : public OperatorStep {
 public:
  DefinitionStep(const graph::Node &graph_node, const OperandRefs &refs, std::vector<QuantizerPtr> quantizers)
      : OperatorStep(graph_node, refs), quantizers_(std::move(quantizers)) {
    kernel = "definition";
  }

  void run(const Context &c) const override {
    StackMemory memory;
    std::vector<Tensor> results;
    run_named([&] {
      results = ops::run_quantized_op(*node_.op, {node_.attrs, operands(c, memory), refs_.outputs.size()}, quantizers_,
                                      node_.clamp ? &*node_.clamp : nullptr);
    });
    for (std::size_t o = 0; o < results.size(); ++o)
      if (refs_.outputs[o] != kNoSlot) copy_elements(c.tensor(refs_.outputs[o]), results[o]);
  }

 private:
  std::vector<QuantizerPtr> quantizers_;
};

}  // namespace

StepPtr make_run(const graph::Node &node, const OperandRefs &refs) { return std::make_unique<RunStep>(node, refs); }

StepPtr make_definition(const graph::Node &node, const OperandRefs &refs, std::vector<QuantizerPtr> quantizers) {
  return std::make_unique<DefinitionStep>(node, refs, std::move(quantizers));
}

}  // namespace qtn::runtime
