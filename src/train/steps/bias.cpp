// SPDX-License-Identifier: Apache-2.0
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

class BiasStep final : public Step {
 public:
  BiasStep(const graph::Node &node, SlotId bias, SlotId y, std::shared_ptr<const BiasUnits> units)
      : units_(std::move(units)) {
    name = node.name;
    reads = grad_inputs = {bias};
    writes = {y};
  }

  void bind(std::span<const Slot> slots) override {
    bias_ = slots[static_cast<std::size_t>(reads[0])].value;
    y_ = slots[static_cast<std::size_t>(writes[0])].value;
    dy_ = slots[static_cast<std::size_t>(writes[0])].gradient;
  }

  void forward(Scratch &) override {
    for (std::int64_t i = 0; i < bias_.count(); ++i)
      y_.as<float>()[i] = units_->rounded(static_cast<double>(bias_.as<const float>()[i]), static_cast<std::size_t>(i));
  }

  void backward(std::span<const Tensor> dx, Scratch &) override {
    if (dx[0].has_data()) copy_elements(dx[0], dy_);
  }

 private:
  const std::shared_ptr<const BiasUnits> units_;
  Tensor bias_, y_, dy_;
};

}  // namespace

StepPtr make_bias(const graph::Node &node, SlotId bias, SlotId y, std::shared_ptr<const BiasUnits> units) {
  return std::make_unique<BiasStep>(node, bias, y, std::move(units));
}

}  // namespace qtn::train
