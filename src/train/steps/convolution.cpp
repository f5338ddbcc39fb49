// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/float_scope.hpp"
#include "ops/common/conv_gradient.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

class ConvolutionStep final : public Step {
 public:
  ConvolutionStep(const graph::Node &node, SlotIds inputs, SlotId y) : node_(node) {
    name = node.name;
    while (inputs.back() == kNoSlot) inputs.pop_back();
    reads = grad_inputs = std::move(inputs);
    keeps = {reads[0], reads[1]};
    writes = {y};
    can_add = true;
  }

  void bind(std::span<const Slot> slots) override {
    for (const SlotId s : reads) xs_.push_back(slots[static_cast<std::size_t>(s)].value);
    for (const Tensor &x : xs_) operands_.push_back(&x);
    y_ = slots[static_cast<std::size_t>(writes[0])].value;
    dy_ = slots[static_cast<std::size_t>(writes[0])].gradient;
    convolution_.emplace(ops::convolution_of(call()));
  }

  void forward(Scratch &scratch) override {
    const FloatScope scope(FloatMode::without_denormals);
    convolution_->forward(xs_[0].as<const float>(), xs_[1].as<const float>(), y_.as<float>(), scratch);
    if (xs_.size() > 2) convolution_->add_bias(xs_[2].as<const float>(), y_.as<float>());
  }

  void backward(std::span<const Tensor> dx, Scratch &scratch) override {
    const FloatScope scope(FloatMode::without_denormals);
    ops::conv_backward(*convolution_, {call(), {}, std::span(&dy_, 1), scratch}, dx, adds);
  }

 private:
  ops::Call call() const { return {node_.attrs, operands_}; }

  const graph::Node node_;
  std::optional<ops::ConvRuns> convolution_;
  std::vector<Tensor> xs_;
  std::vector<const Tensor *> operands_;
  Tensor y_, dy_;
};

}  // namespace

StepPtr make_convolution(const graph::Node &node, SlotIds inputs, SlotId y) {
  return std::make_unique<ConvolutionStep>(node, std::move(inputs), y);
}

}  // namespace qtn::train
