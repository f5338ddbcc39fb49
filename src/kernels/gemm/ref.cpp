// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/memory.hpp"
#include "kernels/gemm/gemm.hpp"

namespace qtn::kernels::gemm_ref {
namespace {

/// Column by column: bias, multiplier, then the weights, up to a whole dword.
struct Column {
  std::int32_t *bias;
  float *multiplier;
  std::int8_t *b;

  static std::size_t bytes(std::size_t k) { return sizeof(std::int32_t) + sizeof(float) + (k + 3) / 4 * 4; }

  Column(const void *packed, std::size_t j, std::size_t k)
      : bias(reinterpret_cast<std::int32_t *>(static_cast<char *>(const_cast<void *>(packed)) + j * bytes(k))),
        multiplier(reinterpret_cast<float *>(bias + 1)),
        b(reinterpret_cast<std::int8_t *>(multiplier + 1)) {}
};

template <class Store>
void for_each(const GemmArgs &args, Store store) {
  for (std::size_t i = 0; i < args.m; ++i) {
    const std::uint8_t *a = args.a + static_cast<std::ptrdiff_t>(i) * args.lda;
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i) * args.ldy;
    for (std::size_t j = 0; j < args.n; ++j) {
      const Column column(args.packed, j, args.k);
      // Sums that fit may pass through others that do not: they wrap there and back.
      auto acc = static_cast<std::uint32_t>(args.bias ? args.bias[j] : *column.bias);
      for (std::size_t k = 0; k < args.k; ++k) acc += static_cast<std::uint32_t>(a[k] * column.b[k]);
      store(row + static_cast<std::ptrdiff_t>(j), acc, *column.multiplier, i, j);
    }
  }
}

float clamped(float v, const GemmArgs &args) {
  v = v < args.lo ? args.lo : v;
  return v > args.hi ? args.hi : v;
}

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return n * Column::bytes(k); }

std::size_t scratch_bytes(std::size_t, std::size_t) { return 0; }

void pack(void *packed, const GemmWeights &w) {
  for (std::size_t j = 0; j < w.n; ++j) {
    const Column to(packed, j, w.k);
    *to.bias = w.bias[j];
    *to.multiplier = w.multiplier[j];
    const std::int8_t *b = w.b + static_cast<std::ptrdiff_t>(j) * w.ldb;
    for (std::size_t k = 0; k < w.k; ++k, b += w.step) to.b[k] = *b;
  }
}

void run_u8(const GemmArgs &args) {
  auto *y = static_cast<std::uint8_t *>(args.y);
  for_each(args, [&](std::ptrdiff_t at, std::uint32_t acc, float m, std::size_t, std::size_t) {
    y[at] = requantize(static_cast<std::int32_t>(acc), m, args.range);
  });
}

void run_f32(const GemmArgs &args) {
  auto *y = static_cast<float *>(args.y);
  for_each(args, [&](std::ptrdiff_t at, std::uint32_t acc, float m, std::size_t, std::size_t j) {
    const float real = static_cast<float>(static_cast<std::int32_t>(acc)) * m;
    y[at] = clamped(args.addend ? real + args.addend[j] : real, args);
  });
}

void run_rows(const GemmArgs &args) {
  auto *y = static_cast<float *>(args.y);
  const GemmRows &rows = *args.rows;
  for_each(args, [&](std::ptrdiff_t at, std::uint32_t acc, float m, std::size_t i, std::size_t j) {
    const auto moved = static_cast<std::uint32_t>(rows.zero[i]) * static_cast<std::uint32_t>(rows.sums[j]);
    const float real = static_cast<float>(static_cast<std::int32_t>(acc - moved)) * (rows.scale[i] * m);
    y[at] = clamped(real + rows.bias[j], args);
  });
}

}  // namespace qtn::kernels::gemm_ref
