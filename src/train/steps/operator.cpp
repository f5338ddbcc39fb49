// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/common/empty.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

class OperatorStep final : public Step {
 public:
  OperatorStep(const graph::Node &node, SlotIds inputs, SlotIds outputs)
      : node_(node), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
    name = node.name;
    const auto add_present = [](std::vector<SlotId> &to, const SlotIds &from) {
      for (const SlotId s : from)
        if (s != kNoSlot) to.push_back(s);
    };
    add_present(reads, inputs_);
    add_present(writes, outputs_);
    if (!node.op->backward) return;
    grad_inputs = inputs_;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (node.op->keeps.inputs.holds(i) && inputs_[i] != kNoSlot) keeps.push_back(inputs_[i]);
    if (node.op->keeps.outputs) add_present(keeps, outputs_);
    // Operands beyond the first that may be absent, as bounds, have no gradient.
    const bool one_operand = node.op->min_inputs == 1 && node.op->max_inputs != ops::kVariadic;
    if (node.op->sum)
      overwrites = Overwrites::by_all;
    else if (node.op->elementwise && one_operand)
      overwrites = Overwrites::by_first;
  }

  void bind(std::span<const Slot> slots) override {
    for (const SlotId s : inputs_) xs_.push_back(s == kNoSlot ? Tensor() : slots[static_cast<std::size_t>(s)].value);
    for (std::size_t i = 0; i < xs_.size(); ++i) operands_.push_back(inputs_[i] == kNoSlot ? nullptr : &xs_[i]);
    for (const SlotId s : outputs_) {
      ys_.push_back(s == kNoSlot ? Tensor() : slots[static_cast<std::size_t>(s)].value);
      dys_.push_back(s == kNoSlot ? Tensor() : slots[static_cast<std::size_t>(s)].gradient);
    }
    if (node_.op->prepare) prepared_ = node_.op->prepare({node_.attrs, operands_, outputs_.size()});
  }

  void forward(Scratch &scratch) override { ops::run_into(*node_.op, call(scratch), ys_); }

  void backward(std::span<const Tensor> dx, Scratch &scratch) override {
    if (ops::hold_nothing(ys_)) {
      for (const Tensor &d : dx)
        if (d.has_data()) std::memset(d.data(), 0, d.nbytes());
      return;
    }
    node_.op->backward({call(scratch), ys_, dys_, scratch}, dx);
  }

 private:
  ops::Call call(Scratch &scratch) const {
    return {node_.attrs, operands_, outputs_.size(), prepared_.get(), &scratch};
  }

  const graph::Node node_;
  SlotIds inputs_, outputs_;
  std::vector<Tensor> xs_, ys_, dys_;
  std::vector<const Tensor *> operands_;
  std::unique_ptr<ops::Prepared> prepared_;
};

}  // namespace

StepPtr make_operator(const graph::Node &node, SlotIds inputs, SlotIds outputs) {
  return std::make_unique<OperatorStep>(node, std::move(inputs), std::move(outputs));
}

}  // namespace qtn::train
