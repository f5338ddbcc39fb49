// SPDX-License-Identifier: Apache-2.0
#include "runtime/watched.hpp"

#include "base/limits.hpp"
#include "base/parallel.hpp"
#include "runtime/plan_cache.hpp"

namespace qtn::runtime {

namespace {

/// Inputs are borrowed for the run only, also where that throws.
class BorrowedInputs {
 public:
  BorrowedInputs(Context &c, const std::vector<SlotId> &slots, std::span<const Tensor> inputs) : c_(c), slots_(slots) {
    for (std::size_t i = 0; i < inputs.size(); ++i) slot(i) = inputs[i];
  }
  ~BorrowedInputs() {
    for (std::size_t i = 0; i < slots_.size(); ++i) slot(i) = Tensor();
  }
  BorrowedInputs(const BorrowedInputs &) = delete;
  BorrowedInputs &operator=(const BorrowedInputs &) = delete;

 private:
  Tensor &slot(std::size_t i) { return c_.tensors[static_cast<std::size_t>(slots_[i])]; }

  Context &c_;
  const std::vector<SlotId> &slots_;
};

}  // namespace

struct Watched::Impl {
  Impl(const graph::Graph &g, const std::vector<graph::ValueId> &values)
      : graph(g), watched(values), plans(graph, isa(), watched) {}

  graph::Graph graph;
  std::vector<graph::ValueId> watched;
  PlanCache plans;
  PlanEntryPtr entry;  ///< that `context` is for
  std::unique_ptr<Context> context;
};

Watched::Watched(const graph::Graph &g, const std::vector<graph::ValueId> &values)
    : impl_(std::make_unique<Impl>(g, values)) {}
Watched::~Watched() = default;
Watched::Watched(Watched &&) noexcept = default;
Watched &Watched::operator=(Watched &&) noexcept = default;

void Watched::run(std::span<const Tensor> inputs, const Watch &watch) {
  std::vector<const Tensor *> pointers;
  for (const Tensor &x : inputs) pointers.push_back(&x);
  const PlanEntryPtr entry = impl_->plans.plan_for(pointers);
  const auto lanes = static_cast<std::size_t>(current_threads());
  if (entry != impl_->entry || impl_->context->lanes < lanes) {
    impl_->entry.reset();  // until there is a context for it: there may be no memory
    impl_->context.reset();
    impl_->context = make_context(entry->plan, lanes);
    impl_->entry = entry;
  }
  Context &c = *impl_->context;
  const Allowance memory(Limit::run_bytes, c.bytes());
  c.begin_run();
  c.watch = &watch;
  const BorrowedInputs borrowed(c, entry->plan.inputs, inputs);
  for (const StepPtr &step : entry->plan.steps) {
    c.begin_step();
    step->run(c);
  }
}

}  // namespace qtn::runtime
