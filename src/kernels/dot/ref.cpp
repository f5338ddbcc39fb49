// SPDX-License-Identifier: Apache-2.0
#include "kernels/dot/dot.hpp"

namespace qtn::kernels::dot_ref {
namespace {

template <class X, class W>
void run_as(const DotArgs &args) {
  for (std::size_t j = 0; j < args.n; ++j) {
    const W *w = static_cast<const W *>(args.w) + static_cast<std::ptrdiff_t>(j) * args.ldw;
    const std::int32_t zw = args.zw ? args.zw[j] : 0;
    for (std::size_t i = 0; i < args.m; ++i) {
      const X *x = static_cast<const X *>(args.x) + static_cast<std::ptrdiff_t>(i) * args.ldx;
      std::int64_t acc = args.bias ? args.bias[j] : 0;
      for (std::size_t k = 0; k < args.k; ++k) acc += (x[k] - args.zx) * (w[k] - zw);
      const float product = static_cast<float>(acc) * args.multiplier[j];
      args.y[static_cast<std::ptrdiff_t>(i) * args.ldy + static_cast<std::ptrdiff_t>(j)] =
          args.addend ? product + args.addend[j] : product;
    }
  }
}

template <class X>
std::int32_t sum_as(const void *x, std::size_t k) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < k; ++i) sum += static_cast<const X *>(x)[i];
  return sum;
}

}  // namespace

void run(const DotArgs &args) {
  args.signed_w ? run_as<std::uint8_t, std::int8_t>(args) : run_as<std::int8_t, std::uint8_t>(args);
}
std::int32_t sum(const void *x, std::size_t k, bool is_signed) {
  return is_signed ? sum_as<std::int8_t>(x, k) : sum_as<std::uint8_t>(x, k);
}

}  // namespace qtn::kernels::dot_ref
