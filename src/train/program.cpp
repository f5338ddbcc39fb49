// SPDX-License-Identifier: Apache-2.0
#include "train/program.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/leases.hpp"
#include "base/limits.hpp"
#include "base/parallel.hpp"
#include "base/poison.hpp"
#include "base/size.hpp"
#include "train/finite.hpp"
#include "train/lower.hpp"

namespace qtn::train {
namespace {

std::size_t bytes_of(const ops::TensorType &type) {
  return round_up((Size(storage_nbytes(type.dtype, element_count(type.shape))) + kReadSlack).value(), kAlignment);
}

/// Leases of an arena, and which values get them.
class Arena {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  std::size_t add(std::size_t time, const ops::TensorType &type) {
    leases_.push_back({time, time, bytes_of(type)});
    return leases_.size() - 1;
  }
  void extend(std::size_t lease, std::size_t time) {
    leases_[lease].first = std::min(leases_[lease].first, time);
    leases_[lease].last = std::max(leases_[lease].last, time);
  }
  AlignedBuffer place() { return AlignedBuffer(place_leases(leases_)); }

  Tensor tensor(std::size_t lease, const ops::TensorType &type, const AlignedBuffer &memory) const {
    return Tensor(type.dtype, type.shape, contiguous_strides(type.shape), memory.data() + leases_[lease].place,
                  nullptr);
  }

 private:
  std::vector<Lease> leases_;
};

void add_to(const Tensor &sum, const Tensor &more) {
  constexpr std::size_t kBlock = std::size_t{1} << 15;
  const auto count = static_cast<std::size_t>(sum.count());
  float *to = sum.as<float>();
  const float *from = more.as<const float>();
  parallel_for(ceil_div(count, kBlock), [&](std::size_t block) {
    const std::size_t end = std::min(count, (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) to[i] += from[i];
  });
}

}  // namespace

Program::Program(Network &network, std::span<const ops::TensorType> inputs) {
  const Allowance memory(Limit::plan_bytes);
  Lowered lowered = lower(network, inputs);
  slots_ = std::move(lowered.slots);
  steps_ = std::move(lowered.steps);
  input_slots_ = std::move(lowered.inputs);
  output_slots_ = std::move(lowered.outputs);
  plan();
}

void Program::plan() {
  const std::size_t end = steps_.size();
  const auto back = [&](std::size_t step) { return 2 * end - step; };
  const auto at = [](SlotId s) { return static_cast<std::size_t>(s); };
  const auto root = [&](SlotId s) { return at(slots_[at(s)].root); };
  std::vector<std::size_t> value(slots_.size(), Arena::kNone), gradient(slots_.size(), Arena::kNone);
  Arena arena;

  const auto value_at = [&](SlotId s, std::size_t time) {
    const std::size_t r = root(s);
    if (slots_[r].given) return;
    if (value[r] == Arena::kNone) value[r] = arena.add(time, slots_[r].type);
    arena.extend(value[r], time);
  };
  for (const SlotId s : input_slots_) value_at(s, 0);
  for (std::size_t i = 0; i < end; ++i) {
    for (const SlotId s : steps_[i]->reads) value_at(s, i);
    for (const SlotId s : steps_[i]->writes) value_at(s, i);
    for (const SlotId s : steps_[i]->keeps) value_at(s, back(i));
  }
  for (const SlotId s : output_slots_) value_at(s, end);

  // Backward: the first gradient that reaches a slot is written, later ones are written elsewhere and added.
  struct Late {
    std::size_t step, give, lease;
  };
  std::vector<Late> late;
  std::vector<bool> reached(slots_.size(), false);
  const auto gradient_at = [&](std::size_t r, std::size_t time) {
    if (slots_[r].given) return;
    if (gradient[r] == Arena::kNone) gradient[r] = arena.add(time, slots_[r].type);
    arena.extend(gradient[r], time);
  };
  // A loss writes the gradient of every output, also of one that nothing trained comes before. It goes elsewhere where
  // a constant has none, and where outputs are one value, whose gradient is the sum.
  std::vector<std::size_t> elsewhere;
  std::vector<bool> written(slots_.size(), false);
  for (const SlotId s : output_slots_) {
    const std::size_t r = root(s);
    const bool has_place = !written[r] && (!slots_[r].given || slots_[r].gradient.has_data());
    elsewhere.push_back(has_place ? Arena::kNone : arena.add(end, slots_[at(s)].type));
    if (has_place) gradient_at(r, end);
    written[r] = true;
    if (slots_[at(s)].needs_grad) reached[r] = true;
  }
  for (std::size_t i = end; i-- > 0;) {
    bool any = false;
    for (const SlotId s : steps_[i]->writes) {
      any = any || reached[root(s)];
      if (reached[root(s)]) gradient_at(root(s), back(i));
    }
    if (!any) continue;
    for (std::size_t g = 0; g < steps_[i]->grad_inputs.size(); ++g) {
      const SlotId s = steps_[i]->grad_inputs[g];
      if (s == kNoSlot || !slots_[at(s)].needs_grad) continue;
      if (reached[root(s)]) {
        late.push_back({i, g, arena.add(back(i), slots_[at(s)].type)});
      } else {
        gradient_at(root(s), back(i));
        reached[root(s)] = true;
      }
    }
  }

  arena_ = arena.place();
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    Slot &slot = slots_[s];
    const std::size_t r = at(slot.root);
    if (value[r] != Arena::kNone) slot.value = arena.tensor(value[r], slot.type, arena_);
    if (gradient[r] != Arena::kNone) slot.gradient = arena.tensor(gradient[r], slot.type, arena_);
    if (slots_[r].given && r != s) {
      slot.value = slots_[r].value.reshaped(slot.type.shape);
      if (slots_[r].gradient.has_data()) slot.gradient = slots_[r].gradient.reshaped(slot.type.shape);
    }
  }
  for (const StepPtr &step : steps_) step->bind(slots_);

  deliveries_.resize(end);
  std::size_t next_late = 0;
  for (std::size_t i = end; i-- > 0;) {
    Delivery &d = deliveries_[i];
    d.dx.resize(steps_[i]->grad_inputs.size());
    for (const SlotId s : steps_[i]->writes) d.any = d.any || (slots_[at(s)].needs_grad && reached[root(s)]);
    if (!d.any) continue;
    for (std::size_t g = 0; g < d.dx.size(); ++g) {
      const SlotId s = steps_[i]->grad_inputs[g];
      if (s == kNoSlot || !slots_[at(s)].needs_grad) continue;
      d.dx[g] = slots_[at(s)].gradient;
      if (next_late < late.size() && late[next_late].step == i && late[next_late].give == g) {
        d.dx[g] = arena.tensor(late[next_late++].lease, slots_[at(s)].type, arena_);
        d.sums.emplace_back(slots_[at(s)].gradient, d.dx[g]);
      }
    }
  }

  for (const SlotId s : input_slots_) inputs_.push_back(slots_[at(s)].value);
  for (std::size_t o = 0; o < output_slots_.size(); ++o) {
    const Slot &slot = slots_[at(output_slots_[o])];
    outputs_.push_back(slot.value);
    output_gradients_.push_back(slot.gradient);
    if (elsewhere[o] == Arena::kNone) continue;
    output_gradients_[o] = arena.tensor(elsewhere[o], slot.type, arena_);
    if (slot.needs_grad && slot.gradient.has_data()) output_sums_.emplace_back(slot.gradient, output_gradients_[o]);
  }
}

bool Program::fits(std::span<const Tensor *const> inputs) const {
  if (inputs.size() != inputs_.size()) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]->dtype() != inputs_[i].dtype() || !(inputs[i]->shape() == inputs_[i].shape())) return false;
  return true;
}

void Program::forward(std::span<const Tensor *const> inputs) {
  poison(arena_.data(), arena_.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) copy_elements(inputs_[i], *inputs[i]);
  for (const StepPtr &step : steps_) step->forward(scratch_);
}

bool Program::hides_not_finite() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const StepPtr &step) { return step->hides_not_finite; });
}

void Program::run_backward(std::size_t i) {
  steps_[i]->backward(deliveries_[i].dx, scratch_);
  for (const auto &[sum, more] : deliveries_[i].sums) add_to(sum, more);
}

void Program::backward() {
  for (const auto &[sum, more] : output_sums_) add_to(sum, more);
  for (std::size_t i = steps_.size(); i-- > 0;)
    if (deliveries_[i].any) run_backward(i);
}

std::optional<std::string> Program::first_not_finite(std::span<const Tensor *const> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    copy_elements(inputs_[i], *inputs[i]);
    if (!all_finite(inputs_[i])) return slots_[static_cast<std::size_t>(input_slots_[i])].name;
  }
  for (const StepPtr &step : steps_) {
    for (const SlotId s : step->reads)
      if (const Slot &slot = slots_[static_cast<std::size_t>(s)]; slot.given && !all_finite(slot.value))
        return slot.name;
    step->forward(scratch_);
    for (const SlotId s : step->writes)
      if (const Slot &slot = slots_[static_cast<std::size_t>(s)]; step->hides_not_finite || !all_finite(slot.value))
        return slot.name;
  }
  return std::nullopt;
}

std::optional<std::string> Program::first_not_finite_gradient() {
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const Delivery &d = deliveries_[i];
    if (!d.any) continue;
    run_backward(i);
    for (std::size_t g = 0; g < d.dx.size(); ++g)
      if (!all_finite(d.dx[g])) return slots_[static_cast<std::size_t>(steps_[i]->grad_inputs[g])].name;
  }
  return std::nullopt;
}

}  // namespace qtn::train
