// SPDX-License-Identifier: Apache-2.0
// Where calibration looks on.
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class Tap final : public Step {
 public:
  Tap(SlotId slot, graph::ValueId value) : value_(value) {
    reads = {slot};
    op = kernel = "Tap";
  }
  void run(const Context &c) const override { (*c.watch)(value_, c.tensor(reads[0])); }

 private:
  graph::ValueId value_;
};

}  // namespace

StepPtr make_tap(SlotId slot, graph::ValueId value) { return std::make_unique<Tap>(slot, value); }

}  // namespace qtn::runtime
