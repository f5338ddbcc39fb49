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

std::size_t at(SlotId s) { return static_cast<std::size_t>(s); }

std::size_t bytes_of(const ops::TensorType &type) {
  return round_up((Size(storage_nbytes(type.dtype, element_count(type.shape))) + kReadSlack).value(), kAlignment);
}

/// Leases of an arena, and the tensors that they become.
class Arena {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  std::size_t add(std::size_t time, const ops::TensorType &type) {
    leases_.push_back({time, time, bytes_of(type)});
    return leases_.size() - 1;
  }
  /// Makes the lease, or makes it longer.
  void hold(std::size_t &lease, std::size_t time, const ops::TensorType &type) {
    if (lease == kNone) lease = add(time, type);
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

/// What gets memory of the program, before it is placed: forward, a step runs at its number, and backward at back().
struct Program::Leases {
  /// A gradient that a step finds.
  struct Found {
    std::size_t step, input;           ///< input: of the step's grad_inputs
    bool late;                         ///< another has been written to the slot before: it is added
    std::size_t lease = Arena::kNone;  ///< of one that is late and written elsewhere
  };

  /// The gradient of a root in time.
  struct Course {
    bool reached = false;          ///< one comes to it
    std::size_t added = SIZE_MAX;  ///< when the first is added to it
    std::size_t read = SIZE_MAX;   ///< when the step that wrote the value reads it
    bool needed_later = false;     ///< by another root, which has the same lease
  };

  Leases(std::span<const Slot> program_slots, std::size_t program_steps)
      : slots(program_slots),
        steps(program_steps),
        values(slots.size(), Arena::kNone),
        gradients(slots.size(), Arena::kNone),
        courses(slots.size()) {}

  std::size_t root(SlotId s) const { return at(slots[at(s)].root); }
  std::size_t back(std::size_t step) const { return 2 * steps - step; }

  void hold_value(SlotId s, std::size_t time) { hold(values, root(s), time); }
  void hold_gradient(SlotId s, std::size_t time) { hold(gradients, root(s), time); }

  /// Whether a gradient that a step finds may have the lease of that of its result. `sharing`: the roots of those
  /// which do already.
  bool may_overwrite(const Step &step, std::size_t input, std::span<const std::size_t> sharing) const {
    if (step.overwrites == Overwrites::nothing || (step.overwrites == Overwrites::by_first && input != 0)) return false;
    const Slot &of = slots[at(step.grad_inputs[input])], &result = slots[at(step.writes[0])];
    return !slots[at(of.root)].given && of.type.shape == result.type.shape && !courses[at(result.root)].needed_later &&
           std::ranges::all_of(sharing, [&](std::size_t other) { return stay_equal(at(of.root), other); });
  }

  /// The gradient of `input` gets the lease of that of `result`.
  void share(SlotId result, SlotId input, std::vector<std::size_t> &sharing) {
    const std::size_t r = root(input);
    for (const std::size_t other : sharing)
      courses[courses[r].read < courses[other].read ? r : other].needed_later = true;
    gradients[r] = gradients[root(result)];
    sharing.push_back(r);
  }

  std::span<const Slot> slots;
  std::size_t steps;
  Arena arena;
  std::vector<std::size_t> values, gradients;  ///< by root
  std::vector<Course> courses;                 ///< by root
  std::vector<Found> found;
  std::vector<std::size_t> elsewhere;  ///< by output: its own gradient, where that is not the one of its slot

 private:
  /// Whether two gradients are the same from when they are written until one of them is not needed any more.
  bool stay_equal(std::size_t a, std::size_t b) const {
    const bool a_first = courses[a].read < courses[b].read;
    const Course &first = courses[a_first ? a : b], &second = courses[a_first ? b : a];
    return first.read < second.read && first.added == SIZE_MAX && second.added > first.read;
  }

  void hold(std::vector<std::size_t> &leases, std::size_t r, std::size_t time) {
    if (!slots[r].given) arena.hold(leases[r], time, slots[r].type);
  }
};

void Program::plan() {
  Leases leases(slots_, steps_.size());
  deliveries_.resize(steps_.size());
  lease_values(leases);
  lease_output_gradients(leases);
  find_gradients(leases);
  lease_gradients(leases);
  place(leases);
  for (const StepPtr &step : steps_) step->bind(slots_);
  deliver(leases);
  connect(leases);
}

void Program::lease_values(Leases &leases) const {
  for (const SlotId s : input_slots_) leases.hold_value(s, 0);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const SlotId s : steps_[i]->reads) leases.hold_value(s, i);
    for (const SlotId s : steps_[i]->writes) leases.hold_value(s, i);
    for (const SlotId s : steps_[i]->keeps) leases.hold_value(s, leases.back(i));
  }
  for (const SlotId s : output_slots_) leases.hold_value(s, steps_.size());
}

/// A loss writes the gradient of every output, also of one that nothing trained comes before. It goes elsewhere where
/// a constant has none, and where outputs are one value, whose gradient is the sum.
void Program::lease_output_gradients(Leases &leases) const {
  std::vector<bool> written(slots_.size(), false);
  for (const SlotId s : output_slots_) {
    const Slot &root = slots_[leases.root(s)];
    const bool has_place = !written[leases.root(s)] && (!root.given || root.gradient.has_data());
    leases.elsewhere.push_back(has_place ? Arena::kNone : leases.arena.add(steps_.size(), slots_[at(s)].type));
    if (has_place) leases.hold_gradient(s, steps_.size());
    written[leases.root(s)] = true;
    if (slots_[at(s)].needs_grad) leases.courses[leases.root(s)].reached = true;
  }
}

void Program::find_gradients(Leases &leases) {
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const std::size_t time = leases.back(i);
    for (const SlotId s : steps_[i]->writes) {
      Leases::Course &course = leases.courses[leases.root(s)];
      course.read = time;
      if (course.reached) deliveries_[i].any = true;
    }
    if (!deliveries_[i].any) continue;
    for (std::size_t g = 0; g < steps_[i]->grad_inputs.size(); ++g) {
      const SlotId s = steps_[i]->grad_inputs[g];
      if (s == kNoSlot || !slots_[at(s)].needs_grad) continue;
      Leases::Course &course = leases.courses[leases.root(s)];
      if (course.reached) course.added = std::min(course.added, time);
      leases.found.push_back({i, g, course.reached});
      course.reached = true;
    }
  }
}

/// The first gradient that reaches a slot is written, later ones are added, or written elsewhere and added then.
void Program::lease_gradients(Leases &leases) const {
  auto found = leases.found.begin();
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const Step &step = *steps_[i];
    const std::size_t time = leases.back(i);
    for (const SlotId s : step.writes)
      if (leases.courses[leases.root(s)].reached) leases.hold_gradient(s, time);
    std::vector<std::size_t> sharing;
    for (; found != leases.found.end() && found->step == i; ++found) {
      const SlotId s = step.grad_inputs[found->input];
      if (found->late && !(step.can_add && found->input == 0)) {
        found->lease = leases.arena.add(time, slots_[at(s)].type);
        continue;
      }
      if (!found->late && leases.may_overwrite(step, found->input, sharing)) leases.share(step.writes[0], s, sharing);
      leases.hold_gradient(s, time);
    }
  }
}

void Program::place(Leases &leases) {
  arena_ = leases.arena.place();
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    Slot &slot = slots_[s];
    const std::size_t r = at(slot.root);
    const auto tensor = [&](std::size_t lease) { return leases.arena.tensor(lease, slot.type, arena_); };
    if (leases.values[r] != Arena::kNone) slot.value = tensor(leases.values[r]);
    if (leases.gradients[r] != Arena::kNone) slot.gradient = tensor(leases.gradients[r]);
    if (slots_[r].given && r != s) {
      slot.value = slots_[r].value.reshaped(slot.type.shape);
      if (slots_[r].gradient.has_data()) slot.gradient = slots_[r].gradient.reshaped(slot.type.shape);
    }
  }
}

void Program::deliver(const Leases &leases) {
  for (std::size_t i = 0; i < steps_.size(); ++i) deliveries_[i].dx.resize(steps_[i]->grad_inputs.size());
  for (const auto &[step, input, late, lease] : leases.found) {
    Delivery &d = deliveries_[step];
    const Slot &slot = slots_[at(steps_[step]->grad_inputs[input])];
    const bool elsewhere = lease != Arena::kNone;
    d.dx[input] = elsewhere ? leases.arena.tensor(lease, slot.type, arena_) : slot.gradient;
    if (elsewhere) d.sums.emplace_back(slot.gradient, d.dx[input]);
    if (late && !elsewhere) steps_[step]->adds = true;
  }
}

void Program::connect(const Leases &leases) {
  for (const SlotId s : input_slots_) inputs_.push_back(slots_[at(s)].value);
  for (std::size_t o = 0; o < output_slots_.size(); ++o) {
    const Slot &slot = slots_[at(output_slots_[o])];
    outputs_.push_back(slot.value);
    output_gradients_.push_back(slot.gradient);
    if (leases.elsewhere[o] == Arena::kNone) continue;
    output_gradients_[o] = leases.arena.tensor(leases.elsewhere[o], slot.type, arena_);
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
    if (!all_finite(inputs_[i])) return slots_[at(input_slots_[i])].name;
  }
  for (const StepPtr &step : steps_) {
    for (const SlotId s : step->reads)
      if (const Slot &slot = slots_[at(s)]; slot.given && !all_finite(slot.value)) return slot.name;
    step->forward(scratch_);
    for (const SlotId s : step->writes)
      if (const Slot &slot = slots_[at(s)]; step->hides_not_finite || !all_finite(slot.value)) return slot.name;
  }
  return std::nullopt;
}

std::optional<std::string> Program::first_not_finite_gradient() {
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const Delivery &d = deliveries_[i];
    if (!d.any) continue;
    run_backward(i);
    for (std::size_t g = 0; g < d.dx.size(); ++g)
      if (!all_finite(d.dx[g])) return slots_[at(steps_[i]->grad_inputs[g])].name;
  }
  return std::nullopt;
}

}  // namespace qtn::train
