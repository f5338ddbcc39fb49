// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradient.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &condition = *call.in(0), &x = *call.in(1), &y = *call.in(2);
  require_dtype("Where", "condition", condition, {QTN_BOOL});
  require_same_dtype("Where", x, y);
  return {{x.dtype(), broadcast(broadcast(x.shape(), y.shape(), "Where"), condition.shape(), "Where")}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &condition = *call.in(0), &x = *call.in(1), &y = *call.in(2), &z = outputs[0];
  const Shape &shape = z.shape();
  dispatch(z.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_rows<4>(shape, {z.strides(), steps_over(condition, shape), steps_over(x, shape), steps_over(y, shape)},
                [&](const auto &at, const auto &steps, std::int64_t length) {
                  T *to = z.as<T>() + at[0];
                  const bool *chosen = condition.as<const bool>() + at[1];
                  const T *a = x.as<const T>() + at[2], *b = y.as<const T>() + at[3];
                  for (std::int64_t i = 0; i < length; ++i)
                    to[i * steps[0]] = chosen[i * steps[1]] ? a[i * steps[2]] : b[i * steps[3]];
                });
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &condition = *run.call.in(0), &dy = run.dy[0];
  const Tensor chosen = scratch_tensor(run.scratch, condition.shape());
  map_elements<bool, float>(condition, chosen, [](bool c) { return c ? 1.0f : 0.0f; });
  for (const std::size_t i : {1, 2})
    broadcast_gradient(
        dx[i], dy, [i](float slope, float c) { return choose((c != 0) == (i == 1), slope, 0); }, chosen);
}

}  // namespace

const OpDef kWhere{.name = "Where",
                   .min_inputs = 3,
                   .max_inputs = 3,
                   .max_outputs = 1,
                   .attrs = {},
                   .infer = infer,
                   .run = run,
                   .moves = always_moves,
                   .moved = {1, 2},
                   .backward = backward,
                   .keeps = {.inputs = {0, 1}}};

}  // namespace qtn::ops
