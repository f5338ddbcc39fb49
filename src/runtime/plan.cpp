// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.hpp"

#include <algorithm>
#include <cstring>

#include "base/fork_gate.hpp"
#include "base/leases.hpp"
#include "base/limits.hpp"
#include "base/size.hpp"
#include "graph/budget.hpp"

namespace qtn::runtime {
namespace {

bool in_arena(const Slot &slot) { return slot.input < 0 && !slot.constant; }

std::size_t slot_bytes(const SlotForm &form) {
  const Size bytes = Size(storage_nbytes(form.dtype, element_count(form.shape))) + kReadSlack;
  return round_up(bytes.value(), kAlignment);
}

}  // namespace

PackedPtr Weights::packed(const Key &key, const std::function<PackedPtr()> &pack) {
  const NoFork section;
  const std::lock_guard lock(mutex_);
  PackedPtr &entry = packed_[key];
  if (!entry) entry = packs_.add(pack());
  return entry;
}

LinearWeights Weights::numbers(const Key &key, const std::function<LinearWeights()> &make) {
  const NoFork section;
  const std::lock_guard lock(mutex_);
  if (const auto known = numbers_.find(key); known != numbers_.end()) return known->second;
  LinearWeights made = make();
  made.weight = {};
  return numbers_.emplace(key, std::move(made)).first->second;
}

Tensor Weights::dequantized(graph::ValueId value, const Tensor &constant) {
  const NoFork section;
  const std::lock_guard lock(mutex_);
  Tensor &entry = dequantized_[value];
  if (!entry.has_data()) {
    const Size bytes = Size(dequantized_bytes_) + storage_nbytes(QTN_FLOAT32, constant.count());
    graph::check_run(bytes.value(), std::max(most_bytes_, static_cast<std::size_t>(limit(Limit::run_bytes))));
    entry = dequantize(constant);
    dequantized_bytes_ = bytes.value();
  }
  return entry;
}

std::size_t Weights::bytes() const {
  const NoFork section;
  const std::lock_guard lock(mutex_);
  std::size_t sum = packs_.bytes();
  for (const auto &[value, tensor] : dequantized_) sum += storage_nbytes(tensor.dtype(), tensor.count());
  return sum;
}

std::size_t Plan::bytes() const {
  constexpr std::size_t kStepBytes = 1024;
  std::size_t bytes = slots.capacity() * sizeof(Slot) + steps.size() * kStepBytes + constant_bytes;
  for (const StepPtr &step : steps) bytes += step->held_bytes();
  return bytes;
}

void place_slots(Plan &plan) {
  std::vector<Lease> leases;
  std::vector<std::size_t> slots;  // of each lease
  std::vector<std::size_t> lease_of(plan.slots.size(), SIZE_MAX);
  const auto touch = [&](SlotId s, std::size_t step) {
    const auto root = static_cast<std::size_t>(plan.slots[static_cast<std::size_t>(s)].root);
    if (!in_arena(plan.slots[root])) return;
    if (lease_of[root] == SIZE_MAX) {
      lease_of[root] = leases.size();
      leases.push_back({step, step, slot_bytes(plan.slots[root].form)});
      slots.push_back(root);
    }
    leases[lease_of[root]].last = step;
  };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const SlotId s : plan.steps[i]->reads) touch(s, i);
    for (const SlotId s : plan.steps[i]->writes) touch(s, i);
    plan.lane_bytes = std::max(plan.lane_bytes, plan.steps[i]->lane_bytes());
  }
  for (const SlotId s : plan.outputs) touch(s, plan.steps.size());
  plan.arena_bytes = place_leases(leases);
  for (std::size_t i = 0; i < leases.size(); ++i) plan.slots[slots[i]].place = leases[i].place;
}

void check_context(const Plan &plan, std::size_t lanes) {
  if (const std::int64_t most = limit(Limit::run_bytes))
    graph::check_run((Size(lanes) * plan.lane_bytes + plan.arena_bytes).value(), static_cast<std::size_t>(most));
}

std::unique_ptr<Context> make_context(const Plan &plan, std::size_t lanes) {
  check_context(plan, lanes);
  auto c = std::make_unique<Context>();
  c->arena = AlignedBuffer(plan.arena_bytes);
  c->lanes = lanes;
  c->lane_bytes = plan.lane_bytes;
  c->scratch = AlignedBuffer((Size(lanes) * plan.lane_bytes).value());
  // Kernels multiply what pads a block of channels with weights of zero. Its value does not matter, but checkers of
  // memory ask that it has one.
  std::memset(c->arena.data(), 0, c->arena.size() + kReadSlack);
  std::memset(c->scratch.data(), 0, c->scratch.size() + kReadSlack);
  c->tensors.reserve(plan.slots.size());
  for (const Slot &slot : plan.slots) {
    const Slot &root = plan.slots[static_cast<std::size_t>(slot.root)];
    if (root.constant) {
      c->tensors.push_back(root.constant->view(slot.form.shape, slot.form.strides, slot.offset));
    } else if (root.input >= 0) {
      c->tensors.emplace_back();  // bound by every run
    } else {
      // A view: elements of packed types may begin within a byte.
      const Tensor start(slot.form.dtype, slot.form.shape, slot.form.strides, c->arena.data() + root.place, nullptr,
                         slot.form.quantizer);
      c->tensors.push_back(start.view(slot.form.shape, slot.form.strides, slot.offset));
    }
  }
  return c;
}

}  // namespace qtn::runtime
