// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/elementwise.hpp"

namespace qtn::kernels::binary_ref {
namespace {

template <class Op>
void for_each(const BinaryArgs &args, Op op) {
  for (std::size_t i = 0; i < args.rows; ++i) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i);
    const std::uint8_t *a = args.a + row * args.a_row, *b = args.b + row * args.b_row;
    std::uint8_t *y = args.y + row * args.y_row;
    for (std::size_t j = 0; j < args.columns; ++j, a += args.a_step, b += args.b_step)
      y[j] = quantize_scaled(op(*a - args.a_zero, *b - args.b_zero), args.range);
  }
}

}  // namespace

void add(const BinaryArgs &args) {
  for_each(args, [&](std::int32_t a, std::int32_t b) {
    return static_cast<float>(a) * args.a_multiplier + static_cast<float>(b) * args.b_multiplier;
  });
}

void mul(const BinaryArgs &args) {
  for_each(args, [&](std::int32_t a, std::int32_t b) { return static_cast<float>(a * b) * args.a_multiplier; });
}

}  // namespace qtn::kernels::binary_ref
