// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <type_traits>

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

/// Elements are bits of one of four sizes. Those of floats mostly lie side by side, or are a single one.
template <class Bits>
void choose_row(Bits *to, const bool *chosen, const Bits *a, const Bits *b, const std::array<std::int64_t, 4> &steps,
                std::int64_t length) {
  const auto choose_by = [=](auto s, auto c, auto of_a, auto of_b) {
    for (std::int64_t i = 0; i < length; ++i) {
      const Bits x = a[i * of_a], y = b[i * of_b];
      to[i * s] = chosen[i * c] ? x : y;
    }
  };
  constexpr std::integral_constant<std::int64_t, 1> one;
  constexpr std::integral_constant<std::int64_t, 0> same;
  const auto are = [&](std::int64_t of_a, std::int64_t of_b) {
    return steps == std::array<std::int64_t, 4>{1, 1, of_a, of_b};
  };
  if constexpr (sizeof(Bits) == sizeof(float)) {
    if (are(1, 1)) return choose_by(one, one, one, one);
    if (are(1, 0)) return choose_by(one, one, one, same);
    if (are(0, 1)) return choose_by(one, one, same, one);
  }
  choose_by(steps[0], steps[1], steps[2], steps[3]);
}

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &condition = *call.in(0), &x = *call.in(1), &y = *call.in(2), &z = outputs[0];
  const Shape &shape = z.shape();
  dispatch(z.dtype(), [&](auto zero) {
    using T = BitsOf<decltype(zero)>;
    for_rows<4>(shape, {z.strides(), steps_over(condition, shape), steps_over(x, shape), steps_over(y, shape)},
                [&](const auto &at, const auto &steps, std::int64_t length) {
                  choose_row(z.as<T>() + at[0], condition.as<const bool>() + at[1], x.as<const T>() + at[2],
                             y.as<const T>() + at[3], steps, length);
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
