// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/fork_gate.hpp"
#include "base/limits.hpp"
#include "base/stable_order.hpp"
#include "base/stack_memory.hpp"
#include "runtime/stages.hpp"

namespace qtn::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// What is known of this many sets of inputs is kept, and as many divisions of the graph.
constexpr std::size_t kStagedLimit = 16;

// Idle memory for runs of a few shapes is kept whatever it takes, that for others as long as all takes no more; parts,
// whose shapes change from run to run, have less of it.
constexpr std::size_t kIdleBytes = std::size_t{16} << 20, kIdleBytesOfPart = std::size_t{1} << 20;

StepTime time_of(const Plan &plan, const Step &step, double ms) {
  StepTime time{step.node, step.op, step.kernel, step.integer, step.macs, 0, ms};
  for (const auto *list : {&step.reads, &step.writes})
    for (const SlotId s : *list) {
      const SlotForm &form = plan.slots[static_cast<std::size_t>(s)].form;
      time.bytes += storage_nbytes(form.dtype, element_count(form.shape));
    }
  return time;
}

/// Whether the steps may write output i elsewhere than into the arena: where it is all of a piece of memory.
bool may_lie_elsewhere(const Plan &plan, std::size_t i) {
  const SlotId s = plan.outputs[i];
  const Slot &slot = plan.slots[static_cast<std::size_t>(s)];
  if (slot.root != s || slot.constant || slot.input >= 0) return false;
  const SlotForm &form = slot.form;
  const auto first = std::ranges::find(plan.outputs, s);  // an output that is there twice has one memory
  return first == plan.outputs.begin() + static_cast<std::ptrdiff_t>(i) && !form.quantizer &&
         same_layout(form.shape, form.strides, contiguous_strides(form.shape));
}

/// All that lies in the memory of this slot begins at `start` from now on.
void place_root(const Plan &plan, Context &c, SlotId root, void *start) {
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    const Slot &slot = plan.slots[s];
    if (slot.root != root) continue;
    const Tensor begin(slot.form.dtype, slot.form.shape, slot.form.strides, start, nullptr, slot.form.quantizer);
    c.tensors[s] = begin.view(slot.form.shape, slot.form.strides, slot.offset);
  }
}

/// Where outputs of a run come to lie instead of the arena; without data: they are copied from there.
class OutputPlaces {
 public:
  OutputPlaces(const Plan &plan, Context &c, std::size_t count, std::span<const Tensor> offered)
      : plan_(plan), c_(c), places_(memory_.list<Tensor>(count)) {
    for (std::size_t i = 0; i < count; ++i) {
      const SlotForm &form = plan.slots[static_cast<std::size_t>(plan.outputs[i])].form;
      const bool is_offered = i < offered.size() && offered[i].has_data() && form.dtype == offered[i].dtype() &&
                              form.shape == offered[i].shape();
      const bool is_large = storage_nbytes(form.dtype, element_count(form.shape)) >= kLargeOutput;
      if ((!is_offered && !is_large) || !may_lie_elsewhere(plan, i)) continue;
      places_[i] = is_offered ? offered[i] : Tensor(form.dtype, form.shape);
      place_root(plan, c, plan.outputs[i], places_[i].data());
    }
  }

  /// What the steps have made. Other outputs may lie in the same memory.
  void take(std::span<Tensor> outputs) const {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = places_[i].has_data() ? places_[i] : c_.tensor(plan_.outputs[i]).clone();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (places_[i].has_data())
        place_root(plan_, c_, plan_.outputs[i],
                   c_.arena.data() + plan_.slots[static_cast<std::size_t>(plan_.outputs[i])].place);
  }

 private:
  static constexpr std::size_t kLargeOutput = std::size_t{1} << 18;  // bytes that take longer to copy than to place

  const Plan &plan_;
  Context &c_;
  StackMemory memory_;
  std::pmr::vector<Tensor> places_;
};

}  // namespace

struct Runner::Staged {
  std::vector<ops::TensorType> types;
  std::vector<Tensor> values;  ///< of inputs that the division depends on
  StagesPtr stages;
};

Runner::Runner(graph::Graph g, std::vector<graph::ValueId> watched, const Within &within)
    : graph_(std::move(g)), watched_(std::move(watched)), within_(within), plans_(graph_, isa(), watched_, within_) {}

Runner::~Runner() = default;

void Runner::prepare(PreparedRun &run) const {
  run.entry->last_use.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  const auto lanes = static_cast<std::size_t>(current_threads());
  if (!run.context || run.context->lanes < lanes)
    run.context = make_context(run.entry->plan, lanes);
  else
    check_context(run.entry->plan, run.context->lanes);
}

void Runner::free_idle() const {
  struct Idle {
    std::int64_t last_use;
    std::size_t bytes;
  };
  std::vector<Idle> idle;
  pool_.drop([&](const PreparedRun &run) {
    idle.push_back({run.entry->last_use, run.context->bytes() + run.context->tensors.size() * sizeof(Tensor)});
    return false;
  });
  idle = stably_sorted(std::move(idle), [](const Idle &a, const Idle &b) { return a.last_use > b.last_use; });
  std::int64_t stale = 0;  // runs that were used then or before
  for (std::size_t i = 0, plans = 0, bytes = 0; i < idle.size() && stale == 0; ++i) {
    if (i == 0 || idle[i].last_use != idle[i - 1].last_use) ++plans;
    bytes += idle[i].bytes;
    const bool is_over =
        within_.is_part ? bytes > kIdleBytesOfPart : plans > PlanCache::kFewPlans && bytes > kIdleBytes;
    if (is_over) stale = idle[i].last_use;
  }
  pool_.drop([&](const PreparedRun &run) { return run.entry->dropped || run.entry->last_use <= stale; });
}

void Runner::run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, const Look &look,
                 std::span<const Tensor> places) const {
  const std::uint64_t key = key_of(inputs);
  // Before the stages: of the first values that they are for, some have plans.
  PreparedRunPtr run = pool_.take(key, [&](const PreparedRun &idle) { return idle.entry->fits(inputs); });
  if (!run) {
    if (const StagesPtr stages = find_stages(inputs)) return run_stages(*stages, inputs, outputs, look);
    Outlook by_types, by_values;
    PlanEntryPtr entry = plans_.plan_for(inputs, by_types, by_values);
    if (!entry) return run_stages(*make_stages(by_types, by_values), inputs, outputs, look);
    run = std::make_unique<PreparedRun>(PreparedRun{key, std::move(entry), nullptr});
    free_idle();
  }
  prepare(*run);
  run_plan(std::move(run), inputs, outputs, look, places);
}

void Runner::run_plan(PreparedRunPtr run, std::span<const Tensor *const> inputs, std::span<Tensor> outputs,
                      const Look &look, std::span<const Tensor> places) const {
  const Plan &plan = run->entry->plan;
  Context &c = *run->context;
  // How many threads there are is the program's choice: a limit in proportion counts the scratch memory of one.
  const std::size_t held = limit(Limit::run_bytes) ? c.bytes() : c.arena.size() + c.lane_bytes;
  const Allowance memory(Limit::run_bytes, held, plans_.run_limit(inputs));
  c.begin_run();
  c.watch = look.watch;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    c.tensors[static_cast<std::size_t>(plan.inputs[i])] = inputs[i]->to_contiguous();
  for (const SlotId s : plan.input_views) {
    const Slot &slot = plan.slots[static_cast<std::size_t>(s)];
    c.tensors[static_cast<std::size_t>(s)] = c.tensor(slot.root).view(slot.form.shape, slot.form.strides, slot.offset);
  }
  const OutputPlaces made(plan, c, outputs.size(), places);
  if (look.plan_bytes) *look.plan_bytes += plan.arena_bytes + c.lanes * plan.lane_bytes;
  Clock::time_point last = look.times ? Clock::now() : Clock::time_point();
  for (const StepPtr &step : plan.steps) {
    c.begin_step();
    {
      const FloatScope scope(step->float_mode);
      step->run(c);
    }
    if (!look.times) continue;
    const Clock::time_point now = Clock::now();
    look.times->push_back(time_of(plan, *step, std::chrono::duration<double, std::milli>(now - last).count()));
    last = Clock::now();
  }
  made.take(outputs);
  for (const auto *borrowed : {&plan.inputs, &plan.input_views})  // for the run only
    for (const SlotId s : *borrowed) c.tensors[static_cast<std::size_t>(s)] = Tensor();
  pool_.give_back(std::move(run));
}

/// What a run takes, in whatever shapes, the next one finds again.
void Runner::run_stages(const Stages &stages, std::span<const Tensor *const> inputs, std::span<Tensor> outputs,
                        const Look &look) const {
  if (BufferReuse::is_on()) return stages.run(inputs, outputs, look);
  std::unique_ptr<KeptBlocks> blocks;
  {
    const NoFork section;
    const std::lock_guard lock(mutex_);
    if (!idle_blocks_.empty()) {
      blocks = std::move(idle_blocks_.back());
      idle_blocks_.pop_back();
    }
  }
  if (!blocks) blocks = std::make_unique<KeptBlocks>(1.0);
  {
    const BufferReuse reuse(*blocks);
    stages.run(inputs, outputs, look);
  }
  const NoFork section;
  const std::lock_guard lock(mutex_);
  idle_blocks_.push_back(std::move(blocks));
}

Runner::StagesPtr Runner::find_stages(std::span<const Tensor *const> inputs) const {
  if (!is_staged_.load(std::memory_order_acquire)) return nullptr;
  const NoFork section;
  const std::lock_guard lock(mutex_);
  for (const Staged &staged : staged_)
    if (fits(staged.types, staged.values, inputs)) return staged.stages;
  return nullptr;
}

Runner::StagesPtr Runner::make_stages(Outlook &by_types, Outlook &by_values) const {
  Staged staged;
  Division division = divide(graph_, by_types.known);
  if (!by_values.values.empty()) {
    Division better = divide(graph_, by_values.known);
    if (better.key != division.key) {
      division = std::move(better);
      staged.values = std::move(by_values.values);
    }
  }
  staged.types = std::move(by_types.inputs);
  {
    const NoFork section;
    const std::lock_guard lock(mutex_);
    const auto known = by_division_.find(division.key);
    if (known != by_division_.end()) staged.stages = known->second;
  }
  if (!staged.stages) staged.stages = std::make_shared<const Stages>(graph_, division, watched_, within_);
  const NoFork section;
  const std::lock_guard lock(mutex_);
  if (by_division_.size() >= kStagedLimit) by_division_.clear();
  by_division_.emplace(division.key, staged.stages);
  if (staged_.size() >= kStagedLimit) staged_.erase(staged_.begin());
  staged_.push_back(staged);
  is_staged_.store(true, std::memory_order_release);
  return staged.stages;
}

std::size_t Runner::weights_bytes() const {
  std::size_t bytes = plans_.weights_bytes();
  const NoFork section;
  const std::lock_guard lock(mutex_);
  for (const auto &[key, stages] : by_division_) bytes += stages->weights_bytes();
  return bytes;
}

}  // namespace qtn::runtime
