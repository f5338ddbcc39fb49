// SPDX-License-Identifier: Apache-2.0
// Where calibration looks on.
#include "runtime/layout.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class Observe final : public Step {
 public:
  Observe(SlotId slot, graph::ValueId value) : value_(value) {
    reads = {slot};
    op = kernel = "Observe";
  }
  void run(const Context &c) const override {
    const Tensor &t = c.tensor(reads[0]);
    const bool gapless = is_gapless({t.dtype(), t.shape(), t.strides(), nullptr});
    (*c.watch)(value_, gapless ? t : t.to_contiguous());
  }

 private:
  graph::ValueId value_;
};

}  // namespace

StepPtr make_observe(SlotId slot, graph::ValueId value) { return std::make_unique<Observe>(slot, value); }

}  // namespace qtn::runtime
