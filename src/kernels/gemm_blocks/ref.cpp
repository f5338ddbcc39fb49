// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/gemm_blocks/panels.hpp"

namespace qtn::kernels::gemm_blocks_ref {
namespace {

using Layout = BlocksPanels<1>;

/// The largest magnitude, of which those that are not finite are larger than all others.
float largest(const float *a, std::size_t count) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, a + i, sizeof bits);
    bits &= 0x7fffffff;
    if (bits > most) most = bits;
  }
  float value;
  std::memcpy(&value, &most, sizeof value);
  return value;
}

/// sum_k qa[k] * (qw[k] - zero) of a block of one column.
std::int32_t product(const std::int8_t *a, const std::uint32_t *words, std::size_t depth, int bits, int offset) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < depth; ++i) {
    const std::size_t bit = bits == 8 ? i % 4 * 8 : i % 8 < 4 ? i % 8 * 8 : i % 8 * 8 - 28;
    const auto w = static_cast<int>(words[i / static_cast<std::size_t>(32 / bits)] >> bit & ((1u << bits) - 1));
    sum += a[i] * (w - offset);
  }
  return sum;
}

}  // namespace

std::size_t packed_bytes(std::size_t n, const BlocksForm &form) { return Layout(form).packed_bytes(n); }
void pack(void *packed, const BlocksWeights &w) { Layout(w.form).pack(packed, w); }

void quantize(const BlocksRows &to, const float *a, std::size_t m, const BlocksForm &form) {
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t b = 0; b < form.blocks(); ++b) {
      const std::size_t depth = form.depth(b), number = i * form.blocks() + b;
      const float *x = a + i * form.k + b * form.block;
      std::int8_t *q = to.q + i * form.row_bytes() + b * form.block_bytes();
      const float most = largest(x, depth);
      const bool finite = std::isfinite(most);
      const float scale = most / 127.0f;
      const bool normal = finite && scale >= std::numeric_limits<float>::min();
      const float inverse = 1.0f / scale;
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < (depth + 7) / 8 * 8; ++k) {
        q[k] = k < depth && normal ? static_cast<std::int8_t>(std::nearbyint(x[k] * inverse)) : std::int8_t{0};
        sum += q[k];
      }
      to.scale[number] = finite ? scale : std::numeric_limits<float>::quiet_NaN();
      to.sum[number] = sum;
    }
}

void run(const BlocksArgs &args) {
  const BlocksForm &form = args.form;
  const Layout layout(form);
  const std::size_t blocks = form.blocks();
  for (std::size_t i = 0; i < args.m; ++i) {
    const char *panel = static_cast<const char *>(args.packed);
    for (std::size_t j = 0; j < args.n; ++j, panel += layout.panel_bytes()) {
      float y = *reinterpret_cast<const float *>(panel);
      const auto *offsets = reinterpret_cast<const std::uint8_t *>(panel + Layout::zeros_at());
      const char *block = panel + layout.blocks_at();
      for (std::size_t b = 0; b < blocks; block += layout.block_bytes(form.depth(b)), ++b) {
        const auto *scale = reinterpret_cast<const float *>(block);
        const std::int32_t sum = product(args.a.q + i * form.row_bytes() + b * form.block_bytes(),
                                         reinterpret_cast<const std::uint32_t *>(scale + 1), form.depth(b), form.bits,
                                         form.zeros ? offsets[b] : up_by(form.bits));
        const float scales = args.a.scale[i * blocks + b] * *scale;
        y = std::fma(static_cast<float>(sum), scales, y);
      }
      y = y < args.lo ? args.lo : y;
      args.y[static_cast<std::ptrdiff_t>(i) * args.ldy + static_cast<std::ptrdiff_t>(j)] = y > args.hi ? args.hi : y;
    }
  }
}

}  // namespace qtn::kernels::gemm_blocks_ref
