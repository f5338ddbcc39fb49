// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_cache.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/fork_gate.hpp"
#include "base/limits.hpp"
#include "base/size.hpp"
#include "graph/budget.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::runtime {
namespace {

// Plans for this many sets of input shapes are kept; the least recently used goes first.
constexpr std::size_t kPlanLimit = 8;

}  // namespace

PlanCache::PlanCache(const graph::Graph &g, Isa isa, std::span<const graph::ValueId> watched, bool is_part)
    : graph_(g),
      isa_(isa),
      constants_(graph::constant_bytes(g)),
      weights_(graph::run_limit(constants_, 0)),
      watched_(watched),
      is_part_(is_part) {}

bool fits(std::span<const ops::TensorType> types, std::span<const Tensor> values,
          std::span<const Tensor *const> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (types[i].dtype != inputs[i]->dtype() || types[i].shape != inputs[i]->shape()) return false;
    if (i < values.size() && values[i].has_data() && !equal(values[i], *inputs[i])) return false;
  }
  return true;
}

std::vector<Tensor> saying_values(std::span<const ops::TensorType> types, std::span<const Tensor *const> inputs) {
  std::vector<Tensor> values(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (graph::may_say_shapes(types[i])) values[i] = inputs[i]->clone();
  return values;
}

PlanEntryPtr PlanCache::plan_for(std::span<const Tensor *const> inputs) {
  {
    const NoFork section;
    const std::lock_guard lock(mutex_);
    for (const PlanEntryPtr &entry : entries_)
      if (entry->fits(inputs)) return entry;
  }
  std::vector<ops::TensorType> types;
  for (const Tensor *x : inputs) types.push_back({x->dtype(), x->shape()});
  try {
    return add(types, {});
  } catch (const NotKnown &) {
    ++values_;
    if (!looks_at_values() && !graph::infer_partly(graph_, types).stops.empty()) throw;
    return add(types, saying_values(types, inputs));
  }
}

void PlanCache::plan_declared(const std::vector<ops::TensorType> &types) {
  try {
    add(types, {});
  } catch (const NotKnown &) {
    // Until there is data.
  } catch (const Error &e) {
    // A graph may not take the batch of 1 for which an open dimension stands.
    if (e.status() == QTN_ENOMEM || !graph::has_open_dimension(graph_)) throw;
  }
}

std::size_t PlanCache::run_limit(std::span<const Tensor *const> inputs) const {
  std::size_t bytes = 0;
  for (const Tensor *x : inputs) bytes += x->nbytes();
  return graph::run_limit(constants_, bytes);
}

PlanEntryPtr PlanCache::add(std::vector<ops::TensorType> types, std::vector<Tensor> values) {
  const Allowance memory(Limit::plan_bytes);
  auto entry = std::make_shared<PlanEntry>();
  entry->plan = lower(graph_, types, values, isa_, weights_, watched_);
  Size inputs = 0;
  for (const ops::TensorType &type : types) inputs = inputs + storage_nbytes(type.dtype, element_count(type.shape));
  Size outputs = 0;
  for (const SlotId s : entry->plan.outputs) {
    const SlotForm &form = entry->plan.slots[static_cast<std::size_t>(s)].form;
    outputs = outputs + storage_nbytes(form.dtype, element_count(form.shape));
  }
  graph::check_run((Size(entry->plan.arena_bytes) + entry->plan.lane_bytes + outputs).value(),
                   graph::run_limit(constants_, inputs.value()));
  entry->inputs = std::move(types);
  entry->values = std::move(values);
  const NoFork section;
  const std::lock_guard lock(mutex_);
  if (entries_.size() == kPlanLimit) {
    const auto oldest =
        std::min_element(entries_.begin(), entries_.end(),
                         [](const PlanEntryPtr &a, const PlanEntryPtr &b) { return a->last_use < b->last_use; });
    (*oldest)->dropped = true;
    entries_.erase(oldest);
  }
  entries_.push_back(entry);
  return entry;
}

}  // namespace qtn::runtime
