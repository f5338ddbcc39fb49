// SPDX-License-Identifier: Apache-2.0
// Where calibration looks on.
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class Observe final : public Step {
 public:
  Observe(SlotId slot, graph::ValueId value) : value_(value) {
    reads = {slot};
    op = kernel = "Observe";
  }
  void run(const Context &c) const override { (*c.watch)(value_, c.tensor(reads[0])); }

 private:
  graph::ValueId value_;
};

}  // namespace

StepPtr make_observe(SlotId slot, graph::ValueId value) { return std::make_unique<Observe>(slot, value); }

}  // namespace qtn::runtime
