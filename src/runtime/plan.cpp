// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.hpp"

#include <algorithm>
#include <numeric>

namespace qtn::runtime {
namespace {

struct Life {
  std::size_t first = SIZE_MAX, last = 0;
  std::size_t bytes = 0;
};

bool in_arena(const Slot &slot) { return slot.input < 0 && !slot.constant.has_data(); }

std::size_t slot_bytes(const SlotForm &form) {
  return round_up(storage_nbytes(form.dtype, element_count(form.shape)) + kReadSlack, kAlignment);
}

}  // namespace

PackedPtr Weights::packed(const Key &key, const std::function<PackedWeights()> &pack) {
  const std::lock_guard lock(mutex_);
  PackedPtr &entry = packed_[key];
  if (!entry) entry = std::make_shared<PackedWeights>(pack());
  return entry;
}

Tensor Weights::dequantized(graph::ValueId value, const Tensor &constant) {
  const std::lock_guard lock(mutex_);
  Tensor &entry = dequantized_[value];
  if (!entry.has_data()) entry = dequantize(constant);
  return entry;
}

std::size_t Weights::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto &[key, packed] : packed_) sum += packed->bytes.size();
  for (const auto &[value, tensor] : dequantized_) sum += storage_nbytes(tensor.dtype(), tensor.count());
  return sum;
}

void place_slots(Plan &plan) {
  std::vector<Life> lives(plan.slots.size());
  const auto touch = [&](SlotId s, std::size_t step) {
    Life &life = lives[static_cast<std::size_t>(plan.slots[static_cast<std::size_t>(s)].root)];
    life.first = std::min(life.first, step);
    life.last = std::max(life.last, step);
  };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const SlotId s : plan.steps[i]->reads) touch(s, i);
    for (const SlotId s : plan.steps[i]->writes) touch(s, i);
    plan.lane_bytes = std::max(plan.lane_bytes, plan.steps[i]->lane_bytes());
  }
  for (const SlotId s : plan.outputs) touch(s, plan.steps.size());

  std::vector<std::size_t> order;
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    if (plan.slots[s].root != static_cast<SlotId>(s) || !in_arena(plan.slots[s]) || lives[s].first == SIZE_MAX)
      continue;
    lives[s].bytes = slot_bytes(plan.slots[s].form);
    order.push_back(s);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lives[a].bytes > lives[b].bytes; });
  std::vector<std::size_t> placed;
  for (const std::size_t s : order) {
    std::vector<std::size_t> rivals;
    for (const std::size_t other : placed)
      if (lives[other].first <= lives[s].last && lives[s].first <= lives[other].last) rivals.push_back(other);
    std::sort(rivals.begin(), rivals.end(),
              [&](std::size_t a, std::size_t b) { return plan.slots[a].place < plan.slots[b].place; });
    std::size_t place = 0;
    for (const std::size_t other : rivals) {
      if (place + lives[s].bytes <= plan.slots[other].place) break;
      place = std::max(place, plan.slots[other].place + lives[other].bytes);
    }
    plan.slots[s].place = place;
    plan.arena_bytes = std::max(plan.arena_bytes, place + lives[s].bytes);
    placed.push_back(s);
  }
}

std::unique_ptr<Context> make_context(const Plan &plan, std::size_t lanes) {
  auto c = std::make_unique<Context>();
  c->arena = AlignedBuffer(plan.arena_bytes);
  c->lanes = lanes;
  c->lane_bytes = plan.lane_bytes;
  c->scratch = AlignedBuffer(lanes * plan.lane_bytes);
  for (const Slot &slot : plan.slots) {
    const Slot &root = plan.slots[static_cast<std::size_t>(slot.root)];
    if (root.constant.has_data()) {
      c->tensors.push_back(root.constant.view(slot.form.shape, slot.form.strides, slot.offset));
    } else if (root.input >= 0) {
      c->tensors.emplace_back();
    } else {
      std::byte *data =
          c->arena.data() + root.place + slot.offset * static_cast<std::ptrdiff_t>(dtype_bits(slot.form.dtype)) / 8;
      c->tensors.emplace_back(slot.form.dtype, slot.form.shape, slot.form.strides, data, nullptr, slot.form.quantizer);
    }
  }
  return c;
}

}  // namespace qtn::runtime
