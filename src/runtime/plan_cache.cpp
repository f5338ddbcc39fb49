// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_cache.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.hpp"
#include "base/fork_gate.hpp"
#include "base/limits.hpp"
#include "base/size.hpp"
#include "graph/budget.hpp"
#include "graph/infer_branches.hpp"
#include "graph/passes/passes.hpp"

namespace qtn::runtime {
namespace {

// All plans of a graph take no more, beyond a few of them, and a part of what its constants take.
constexpr std::size_t kPlanBytes = std::size_t{64} << 20, kConstantBytesPerByte = 8;

constexpr std::uint64_t kKeyOfNothing = 14695981039346656037u;  // FNV-1a

std::uint64_t mixed(std::uint64_t key, qdtype dtype, const Shape &shape) {
  const auto mix = [&](std::int64_t value) { key = (key ^ static_cast<std::uint64_t>(value)) * 1099511628211u; };
  mix(dtype);
  for (const std::int64_t dim : shape) mix(dim);
  return key;
}

/// Equal for equal types and values.
std::uint64_t key_with_values(std::uint64_t key, std::span<const Tensor> values) {
  for (const Tensor &t : values)
    if (t.has_data()) key = 31 * key + std::hash<std::string_view>()({t.as<const char>(), t.nbytes()});
  return key;
}

/// For tensors of one type and shape: 0 is not -0, and NaN is itself.
bool same_bytes(const Tensor &kept, const Tensor &x) {
  if (kept.quantized() || x.quantized()) return equal(kept, x);
  return std::memcmp(kept.data(), x.to_contiguous().data(), kept.nbytes()) == 0;
}

std::size_t channel_bytes(const graph::Graph &g) {
  std::size_t bytes = 0;
  for (const graph::Value &value : g.values)
    if (value.is_constant() && value.constant.rank() <= 1) bytes += value.constant.nbytes();
  return bytes;
}

}  // namespace

PlanCache::PlanCache(const graph::Graph &g, Isa isa, std::span<const graph::ValueId> watched, const Within &within)
    : graph_(g),
      isa_(isa),
      within_(within),
      constants_(graph::constant_bytes(g)),
      channel_bytes_(channel_bytes(g)),
      weights_(graph::run_limit(constants_, 0)),
      watched_(watched) {}

std::uint64_t key_of(std::span<const Tensor *const> inputs) {
  std::uint64_t key = kKeyOfNothing;
  for (const Tensor *x : inputs) key = mixed(key, x->dtype(), x->shape());
  return key;
}

bool fits(std::span<const ops::TensorType> types, std::span<const Tensor> values,
          std::span<const Tensor *const> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (types[i].dtype != inputs[i]->dtype() || types[i].shape != inputs[i]->shape()) return false;
    if (i < values.size() && values[i].has_data() && !same_bytes(values[i], *inputs[i])) return false;
  }
  return true;
}

std::vector<Tensor> saying_values(std::span<const ops::TensorType> types, std::span<const Tensor *const> inputs) {
  std::vector<Tensor> values(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (graph::may_say_shapes(types[i])) values[i] = inputs[i]->clone();
  return values;
}

PlanEntryPtr PlanCache::plan_for(std::span<const Tensor *const> inputs, Outlook &by_types, Outlook &by_values) {
  {
    const NoFork section;
    const std::lock_guard lock(mutex_);
    const std::uint64_t key = key_of(inputs);
    for (const Kept &kept : kept_)
      if (kept.key == key && kept.entry->fits(inputs)) return kept.entry;
  }
  const Allowance memory(Limit::plan_bytes);
  for (const Tensor *x : inputs) by_types.inputs.push_back({x->dtype(), x->shape()});
  look(by_types);
  if (by_types.known.stops.empty()) return add(by_types);
  ++values_;
  if (!looks_at_values()) return nullptr;
  std::vector<Tensor> values = saying_values(by_types.inputs, inputs);
  if (std::ranges::none_of(values, [](const Tensor &x) { return x.has_data(); })) return nullptr;
  by_values = {by_types.inputs, std::move(values), {}};
  look(by_values);
  return by_values.known.stops.empty() ? add(by_values) : nullptr;
}

void PlanCache::plan_declared(const std::vector<ops::TensorType> &types) {
  const Allowance memory(Limit::plan_bytes);
  try {
    Outlook outlook{types, {}, {}};
    look(outlook);
    if (outlook.known.stops.empty()) add(outlook);
  } catch (const Error &e) {
    // A graph may not take the batch of 1 for which an open dimension stands.
    if (e.status() == QTN_ENOMEM || !graph::has_open_dimension(graph_)) throw;
  }
}

std::size_t PlanCache::run_limit(std::span<const Tensor *const> inputs) const {
  std::size_t bytes = 0;
  for (const Tensor *x : inputs) bytes += x->nbytes();
  return limit_with(bytes);
}

std::size_t PlanCache::limit_with(std::size_t input_bytes) const {
  return graph::run_limit(std::max(constants_, within_.constants), input_bytes);
}

void PlanCache::look(Outlook &outlook) const {
  outlook.known = graph::infer_branches(graph_, real_types(graph_, outlook.inputs), outlook.values);
}

PlanEntryPtr PlanCache::add(Outlook &outlook) {
  auto entry = std::make_shared<PlanEntry>();
  entry->plan = lower(graph_, outlook.inputs, graph::complete(std::move(outlook.known)), isa_, weights_, watched_);
  Size inputs = 0;
  for (const ops::TensorType &type : outlook.inputs)
    inputs = inputs + storage_nbytes(type.dtype, element_count(type.shape));
  Size outputs = 0;
  for (const SlotId s : entry->plan.outputs) {
    const SlotForm &form = entry->plan.slots[static_cast<std::size_t>(s)].form;
    outputs = outputs + storage_nbytes(form.dtype, element_count(form.shape));
  }
  graph::check_run((Size(entry->plan.arena_bytes) + entry->plan.lane_bytes + outputs).value(),
                   limit_with(inputs.value()));
  entry->bytes = entry->plan.bytes() + channel_bytes_;
  std::uint64_t key = kKeyOfNothing;
  for (const ops::TensorType &type : outlook.inputs) key = mixed(key, type.dtype, type.shape);
  entry->inputs = std::move(outlook.inputs);
  entry->values = std::move(outlook.values);
  const NoFork section;
  const std::lock_guard lock(mutex_);
  if (std::erase(dropped_, key_with_values(key, entry->values))) most_plans_ = std::min(2 * most_plans_, kMostPlans);
  const std::size_t most_bytes = kPlanBytes + constants_ / kConstantBytesPerByte;
  while (kept_.size() >= most_plans_ || (kept_.size() >= kFewPlans && kept_bytes_ + entry->bytes > most_bytes))
    drop_oldest();
  kept_.push_back({key, entry});
  kept_bytes_ += entry->bytes;
  return entry;
}

void PlanCache::drop_oldest() {
  const auto oldest = std::ranges::min_element(kept_, {}, [](const Kept &kept) { return kept.entry->last_use.load(); });
  if (dropped_.size() == kMostPlans) dropped_.erase(dropped_.begin());
  dropped_.push_back(key_with_values(oldest->key, oldest->entry->values));
  oldest->entry->dropped = true;
  kept_bytes_ -= oldest->entry->bytes;
  kept_.erase(oldest);
}

}  // namespace qtn::runtime
