// SPDX-License-Identifier: Apache-2.0
#include "runtime/state.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/memory.hpp"
#include "core/dtype.hpp"
#include "graph/budget.hpp"

namespace qtn::runtime {
namespace {

bool is_known(const std::optional<Shape> &shape) {
  return shape && std::ranges::all_of(*shape, [](std::int64_t dim) { return dim >= 0; });
}

bool may_be_equal(const Shape &a, const Shape &b) {
  bool may = a.size() == b.size();
  for (std::size_t d = 0; may && d < a.size(); ++d) may = a[d] < 0 || b[d] < 0 || a[d] == b[d];
  return may;
}

}  // namespace

bool State::Memory::is_free() const {
  constexpr long kOwn = 2;  // this owner, and that of the tensor
  if (!owner || owner.use_count() != kOwn) return false;
  // Other holders have let go after their last reads, and letting go of one more comes after that.
  { const std::shared_ptr<void> another = owner; }
  return owner.use_count() == kOwn;
}

State::Memory State::take_memory(qdtype dtype, const Shape &shape) {
  const auto buffer = std::make_shared<AlignedBuffer>(storage_nbytes(dtype, element_count(shape)));
  return {Tensor(dtype, shape, contiguous_strides(shape), buffer->data(), buffer), buffer};
}

bool State::holds(std::size_t input) const {
  return std::ranges::any_of(entries_, [&](const Entry &e) { return e.input == input; });
}

void State::bind(std::size_t output, std::size_t input) {
  if (output >= graph_.outputs.size())
    fail(QTN_EINVAL, "session: output ", output, " is not one of the model's ", graph_.outputs.size());
  if (input >= graph_.inputs.size())
    fail(QTN_EINVAL, "session: input ", input, " is not one of the model's ", graph_.inputs.size());
  Entry made{output, input, {}, {}, {}, {}, true};
  check_declared(made);
  const auto old = std::ranges::find(entries_, input, &Entry::input);
  if (old == entries_.end())
    entries_.push_back(std::move(made));
  else
    *old = std::move(made);
}

void State::reset() {
  for (Entry &e : entries_) {
    if (e.now.tensor.has_data()) e.spare = std::move(e.now);
    e.now = {};
    e.keeps_shape = true;
  }
}

/// What the file says of both, and where all inputs are known, what follows for the output.
void State::check_declared(const Entry &e) const {
  const graph::Value &to = input(e), &from = output(e);
  std::optional<qdtype> dtype = from.dtype;
  std::optional<Shape> shape = from.shape;
  std::vector<ops::TensorType> types;
  bool all_known = true;
  for (const graph::ValueId v : graph_.inputs) {
    const graph::Value &value = graph_.value(v);
    all_known = all_known && is_known(value.shape);
    if (all_known) types.push_back({value.dtype.value_or(QTN_FLOAT32), *value.shape});
  }
  if (all_known) {
    const auto known = graph::infer_partly(graph_, types).types[static_cast<std::size_t>(graph_.outputs[e.output])];
    if (known) dtype = known->dtype, shape = known->shape;
  }
  const qdtype wanted = to.dtype.value_or(QTN_FLOAT32);
  if (dtype && *dtype != wanted)
    fail(QTN_EDTYPE, "session: output \"", from.name, "\" is ", dtype_name(*dtype), ", and input \"", to.name,
         "\" takes ", dtype_name(wanted));
  if (shape && to.shape && !may_be_equal(*shape, *to.shape))
    fail(QTN_ESHAPE, "session: output \"", from.name, "\" is ", to_string(*shape), ", and input \"", to.name,
         "\" takes ", to_string(*to.shape));
}

const Tensor &State::first(Entry &e) const {
  if (e.zeros.has_data()) return e.zeros;
  const graph::Value &value = input(e);
  if (!is_known(value.shape))
    fail(QTN_ESTATE, "session: input \"", value.name, "\" takes ", value.shape ? to_string(*value.shape) : "any shape",
         ", so its first state has to be given");
  const qdtype dtype = value.dtype.value_or(QTN_FLOAT32);
  graph::check_run(storage_nbytes(dtype, element_count(*value.shape)),
                   graph::run_limit(graph::constant_bytes(graph_), 0));
  const Tensor zeros = take_memory(dtype, *value.shape).tensor;
  std::memset(zeros.data(), 0, zeros.nbytes());
  e.zeros = zeros;
  return e.zeros;
}

State::Turn::Turn(State &state) : state_(state) {
  if (state_.is_running_.exchange(true, std::memory_order_acquire))
    fail(QTN_ESTATE, "session: it has state, so it serves one run at a time, and another is under way");
}

State::Turn::~Turn() {
  for (Entry &e : state_.entries_)
    if (e.offered.tensor.has_data()) e.spare = std::move(e.offered), e.offered = {};
  state_.is_running_.store(false, std::memory_order_release);
}

void State::Turn::fill(std::span<const Tensor *> inputs) {
  for (Entry &e : state_.entries_)
    if (!inputs[e.input]) inputs[e.input] = e.now.tensor.has_data() ? &e.now.tensor : &state_.first(e);
}

void State::Turn::offer(std::span<const Tensor *const> inputs, std::span<Tensor> places) {
  for (Entry &e : state_.entries_) {
    if (!e.keeps_shape || places[e.output].has_data()) continue;
    const Tensor &like = *inputs[e.input];
    const bool fits = e.spare.tensor.dtype() == like.dtype() && e.spare.tensor.shape() == like.shape();
    e.offered = fits && e.spare.is_free() ? std::move(e.spare) : take_memory(like.dtype(), like.shape());
    e.spare = {};
    places[e.output] = e.offered.tensor;
  }
}

void State::Turn::check(std::span<const Tensor> outputs) const {
  for (const Entry &e : state_.entries_) {
    const Tensor &made = outputs[e.output];
    const graph::Value &from = state_.output(e), &to = state_.input(e);
    const qdtype wanted = to.dtype.value_or(QTN_FLOAT32);
    if (made.dtype() != wanted)
      fail(QTN_EDTYPE, "session: output \"", from.name, "\" has become ", dtype_name(made.dtype()), ", and input \"",
           to.name, "\" takes ", dtype_name(wanted));
    if (to.shape && !may_be_equal(made.shape(), *to.shape))
      fail(QTN_ESHAPE, "session: output \"", from.name, "\" has become ", to_string(made.shape()), ", and input \"",
           to.name, "\" takes ", to_string(*to.shape));
  }
}

void State::Turn::commit(std::span<const Tensor> outputs) noexcept {
  for (Entry &e : state_.entries_) {
    const Tensor &made = outputs[e.output];
    Memory old = std::move(e.now);
    if (e.offered.tensor.has_data() && e.offered.tensor.data() == made.data()) {
      e.now = std::move(e.offered);
      e.offered = {};
      e.spare = std::move(old);
    } else {
      e.keeps_shape = e.keeps_shape && e.offered.tensor.has_data() && made.shape() == e.offered.tensor.shape();
      e.now = {made, nullptr};
    }
  }
}

}  // namespace qtn::runtime
