// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/common/contiguous.hpp"
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

using Steps = std::array<std::int64_t, 4>;  ///< from element to element of z, the condition, x and y

/// Elements are bits of one of four sizes.
template <class Bits>
void choose_row(std::byte *z, const bool *chosen, const std::byte *x, const std::byte *y, const Steps &steps,
                std::int64_t count) {
  auto *to = reinterpret_cast<Bits *>(z);
  const Bits *a = reinterpret_cast<const Bits *>(x), *b = reinterpret_cast<const Bits *>(y);
  if (steps[1] == 0) {  // all come from one side
    const Bits *from = *chosen ? a : b;
    const std::int64_t s = steps[0], step = steps[*chosen ? 2 : 3];
    if (s == 1 && step == 0) return void(std::fill_n(to, count, *from));
    if (s == 1 && step == 1) return void(std::copy_n(from, count, to));
    for (std::int64_t i = 0; i < count; ++i) to[i * s] = from[i * step];
    return;
  }
  const auto *by = reinterpret_cast<const std::uint8_t *>(chosen);
  const auto loop = [=](auto s, auto c, auto of_a, auto of_b) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Bits u = a[i * of_a], v = b[i * of_b];
      to[i * s] = by[i * c] ? u : v;
    }
  };
  constexpr std::integral_constant<std::int64_t, 1> one;
  constexpr std::integral_constant<std::int64_t, 0> same;
  constexpr std::int64_t kVectors = 32;  // shorter rows are quicker without
  if ((sizeof(Bits) == sizeof(float) || sizeof(Bits) == 1) && count >= kVectors) {
    if (steps == Steps{1, 1, 1, 1}) return loop(one, one, one, one);
    if (steps == Steps{1, 1, 1, 0}) return loop(one, one, one, same);
    if (steps == Steps{1, 1, 0, 1}) return loop(one, one, same, one);
    if (steps == Steps{1, 1, 0, 0}) return loop(one, one, same, same);
  }
  loop(steps[0], steps[1], steps[2], steps[3]);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &condition = *call.in(0), &x = *call.in(1), &y = *call.in(2), &z = outputs[0];
  const Shape &shape = z.shape();
  const auto size = static_cast<std::int64_t>(dtype_size(z.dtype()));
  auto *row = &choose_row<std::uint8_t>;
  dispatch_width(z.dtype(), [&](auto zero) { row = &choose_row<decltype(zero)>; });
  for_rows<4>(shape, {z.strides(), steps_over(condition, shape), steps_over(x, shape), steps_over(y, shape)},
              [&](const auto &at, const Steps &steps, std::int64_t count) {
                row(z.as<std::byte>() + at[0] * size, condition.as<const bool>() + at[1],
                    x.as<const std::byte>() + at[2] * size, y.as<const std::byte>() + at[3] * size, steps, count);
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
