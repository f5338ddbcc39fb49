// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/memory.hpp"
#include "kernels/gemm/gemm.hpp"

namespace qtn::kernels::gemm_ref {
namespace {

/// bias[n], multiplier[n], then the weights [n][k] without padding.
struct Packed {
  std::int32_t *bias;
  float *multiplier;
  std::int8_t *b;

  Packed(const void *packed, std::size_t n)
      : bias(static_cast<std::int32_t *>(const_cast<void *>(packed))),
        multiplier(reinterpret_cast<float *>(bias + n)),
        b(reinterpret_cast<std::int8_t *>(multiplier + n)) {}
};

template <class Store>
void for_each(const GemmArgs &args, Store store) {
  const Packed packed(args.packed, args.n);
  for (std::size_t i = 0; i < args.m; ++i) {
    const std::uint8_t *a = args.a + static_cast<std::ptrdiff_t>(i) * args.lda;
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i) * args.ldy;
    for (std::size_t j = 0; j < args.n; ++j) {
      const std::int8_t *b = packed.b + j * args.k;
      std::int32_t acc = packed.bias[j];
      for (std::size_t k = 0; k < args.k; ++k) acc += a[k] * b[k];
      store(row + static_cast<std::ptrdiff_t>(j), acc, packed.multiplier[j]);
    }
  }
}

}  // namespace

std::size_t packed_bytes(std::size_t n, std::size_t k) { return n * (sizeof(std::int32_t) + sizeof(float) + k); }

std::size_t scratch_bytes(std::size_t) { return 0; }

void pack(void *packed, const GemmWeights &w) {
  const Packed to(packed, w.n);
  for (std::size_t j = 0; j < w.n; ++j) {
    to.bias[j] = w.bias[j];
    to.multiplier[j] = w.multiplier[j];
    std::memcpy(to.b + j * w.k, w.b + static_cast<std::ptrdiff_t>(j) * w.ldb, w.k);
  }
}

void run_u8(const GemmArgs &args) {
  auto *y = static_cast<std::uint8_t *>(args.y);
  for_each(args, [&](std::ptrdiff_t at, std::int32_t acc, float m) { y[at] = requantize(acc, m, args.range); });
}

void run_f32(const GemmArgs &args) {
  auto *y = static_cast<float *>(args.y);
  for_each(args, [&](std::ptrdiff_t at, std::int32_t acc, float m) {
    float v = static_cast<float>(acc) * m;
    v = v < args.lo ? args.lo : v;
    y[at] = v > args.hi ? args.hi : v;
  });
}

}  // namespace qtn::kernels::gemm_ref
