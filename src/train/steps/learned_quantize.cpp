// SPDX-License-Identifier: Apache-2.0
#include "quant/observe/kinds.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

class LearnedQuantizeStep final : public Step {
 public:
  LearnedQuantizeStep(SlotId x, SlotId y, ActivationGrid &grid, SlotIds parameters, const Switches &switches)
      : grid_(grid), switches_(switches) {
    name = grid_.name();
    keeps = {x};
    reads = grad_inputs = {x};
    writes = {y};
    overwrites = Overwrites::by_first;
    for (const SlotId p : parameters) {
      reads.push_back(p);
      grad_inputs.push_back(p);
    }
  }

  void bind(std::span<const Slot> slots) override {
    x_ = slots[static_cast<std::size_t>(reads[0])].value;
    y_ = slots[static_cast<std::size_t>(writes[0])].value;
    dy_ = slots[static_cast<std::size_t>(writes[0])].gradient;
    if (!slots[static_cast<std::size_t>(reads[0])].needs_grad) unwanted_ = Tensor(QTN_FLOAT32, x_.shape());
  }

  void forward(Scratch &) override {
    bool finite = true;
    if (x_.count() > 0) {
      const kernels::Extent extent = quant::extent_of(x_.as<const float>(), static_cast<std::size_t>(x_.count()));
      finite = extent.finite;
      if (finite && switches_.observers && grid_.observes()) grid_.observe(extent.min, extent.max);
    }
    rounds_ = switches_.fake_quant && grid_.known();
    hides_not_finite = rounds_ && !finite;
    rounds_ ? fake_quantize(x_, grid_.view(), y_) : copy_elements(y_, x_);
  }

  void backward(std::span<const Tensor> dx, Scratch &scratch) override {
    const Tensor &d = dx[0].has_data() ? dx[0] : unwanted_;
    const auto samples = static_cast<double>(x_.rank() > 0 ? x_.dim(0) : 1);
    if (rounds_) {
      grid_.learned()->backward(x_, grid_.view(), static_cast<double>(x_.count()) / samples, dy_, d, dx.subspan(1),
                                scratch);
      return;
    }
    for (const Tensor &part : dx.subspan(1))
      if (part.has_data()) part.as<float>()[0] = 0;
    copy_elements(d, dy_);
  }

 private:
  ActivationGrid &grid_;
  const Switches &switches_;
  Tensor x_, y_, dy_;
  Tensor unwanted_;      // where the gradient of x goes where nothing needs it
  bool rounds_ = false;  // in the last forward run
};

}  // namespace

StepPtr make_learned_quantize(SlotId x, SlotId y, ActivationGrid &grid, SlotIds parameters, const Switches &switches) {
  return std::make_unique<LearnedQuantizeStep>(x, y, grid, std::move(parameters), switches);
}

}  // namespace qtn::train
