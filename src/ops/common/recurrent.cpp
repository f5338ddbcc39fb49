// SPDX-License-Identifier: Apache-2.0
#include "ops/common/recurrent.hpp"

namespace qtn::ops {

Recurrent::Recurrent(const char *op, const Call &call, std::int64_t gate_count,
                     const std::vector<std::string> &defaults)
    : gates(gate_count) {
  const Tensor &x = *call.in(0), &w = *call.in(1), &r = *call.in(2);
  require_real(op, "X", &x);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3)
    fail(QTN_ESHAPE, op, ": X ", to_string(x.shape()), ", W ", to_string(w.shape()), " and R ", to_string(r.shape()),
         " must have 3 axes");
  const std::int64_t layout = call.attrs.get_int("layout", 0);
  if (layout != 0 && layout != 1) fail(QTN_EINVAL, op, ": layout is ", layout, ", not 0 or 1");
  by_batch = layout == 1;
  const std::string direction = call.attrs.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    fail(QTN_EINVAL, op, ": direction is \"", direction, "\", not forward, reverse or bidirectional");
  directions = direction == "bidirectional" ? 2 : 1;
  reverse = direction == "reverse";
  steps = x.dim(by_batch ? 1 : 0), batches = x.dim(by_batch ? 0 : 1), features = x.dim(2);
  hidden = r.dim(2);
  if (const std::int64_t said = call.attrs.get_int("hidden_size", hidden); said != hidden)
    fail(QTN_EINVAL, op, ": hidden_size is ", said, ", R is ", to_string(r.shape()));
  const auto count = static_cast<std::int64_t>(directions);
  const std::int64_t width = mul_dims(op, gates, hidden);
  if (!(w.shape() == Shape{count, width, features}) || !(r.shape() == Shape{count, width, hidden}))
    fail(QTN_ESHAPE, op, ": W is ", to_string(w.shape()), " and R ", to_string(r.shape()), " for ", features,
         " features, ", hidden, " hidden ones and ", count, " directions");
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    if (call.in(i) && i != 4) require_same_dtype(op, x, *call.in(i));
  if (const Tensor *b = call.in(3); b && !(b->shape() == Shape{count, 2 * width}))
    fail(QTN_ESHAPE, op, ": B is ", to_string(b->shape()), ", ", to_string(Shape{count, 2 * width}), " is expected");
  if (const Tensor *lengths = call.in(4)) {
    require_dtype(op, "sequence_lens", *lengths, {QTN_INT32});
    if (!(lengths->shape() == Shape{batches}))
      fail(QTN_ESHAPE, op, ": sequence_lens is ", to_string(lengths->shape()), ", X ", to_string(x.shape()));
  }
  check_state(op, "initial_h", call.in(5));
  clip = call.attrs.get_float("clip", std::numeric_limits<double>::infinity());
  if (!(clip > 0)) fail(QTN_EINVAL, op, ": clip is ", clip);
  activations = gate_activations(op, call.attrs, directions, defaults);
}

Shape Recurrent::y_shape() const {
  const auto count = static_cast<std::int64_t>(directions);
  return by_batch ? Shape{batches, steps, count, hidden} : Shape{steps, count, batches, hidden};
}

Shape Recurrent::state_shape() const {
  const auto count = static_cast<std::int64_t>(directions);
  return by_batch ? Shape{batches, count, hidden} : Shape{count, batches, hidden};
}

void Recurrent::check_state(const char *op, const char *name, const Tensor *t) const {
  if (t && !(t->shape() == state_shape()))
    fail(QTN_ESHAPE, op, ": ", name, " is ", to_string(t->shape()), ", ", to_string(state_shape()), " is expected");
}

Lengths::Lengths(const char *op, const Recurrent &r, const Tensor *given)
    : given_(given ? given->as<const std::int32_t>() : nullptr), steps_(r.steps) {
  for (std::int64_t b = 0; given && b < r.batches; ++b)
    if (given_[b] < 0 || given_[b] > r.steps)
      fail(QTN_EINVAL, op, ": a sequence of ", given_[b], " steps, X has ", r.steps);
}

}  // namespace qtn::ops
