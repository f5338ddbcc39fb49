// SPDX-License-Identifier: Apache-2.0
#include "quant/observe/kinds.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

class FakeQuantizeStep final : public Step {
 public:
  FakeQuantizeStep(SlotId x, SlotId y, ActivationGrid &grid, const Switches &switches)
      : grid_(grid), switches_(switches) {
    name = grid.name();
    reads = keeps = gives = {x};
    writes = {y};
  }

  void bind(std::span<const Slot> slots) override {
    x_ = slots[static_cast<std::size_t>(reads[0])].value;
    y_ = slots[static_cast<std::size_t>(writes[0])].value;
    dy_ = slots[static_cast<std::size_t>(writes[0])].gradient;
  }

  void forward(Mode mode, Scratch &) override {
    if (mode == Mode::training && switches_.observers && !grid_.fixed() && x_.count() > 0)
      if (const kernels::Extent extent = quant::extent_of(x_.as<const float>(), static_cast<std::size_t>(x_.count()));
          extent.finite)
        grid_.observe(extent.min, extent.max);
    rounds_ = switches_.fake_quant && grid_.known();
    if (!rounds_) return copy_elements(y_, x_);
    fake_quantize(x_, grid_.view(), y_);
  }

  void backward(std::span<const Tensor> dx, Scratch &) override {
    if (!dx[0].has_data()) return;
    if (!rounds_) return copy_elements(dx[0], dy_);
    fake_quantize_backward(x_, grid_.view(), dy_, dx[0]);
  }

 private:
  ActivationGrid &grid_;
  const Switches &switches_;
  Tensor x_, y_, dy_;
  bool rounds_ = false;  // in the last forward run
};

}  // namespace

StepPtr make_fake_quantize(SlotId x, SlotId y, ActivationGrid &grid, const Switches &switches) {
  return std::make_unique<FakeQuantizeStep>(x, y, grid, switches);
}

}  // namespace qtn::train
