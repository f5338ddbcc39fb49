// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_codes/panels.hpp"
#include "kernels/sum_blocks.hpp"

namespace qtn::kernels::gemm_codes_ref {
namespace {

/// body(k, w) for every element of a panel of one column.
template <class Body>
void each_weight(const void *panel, const CodesForm &form, const Body &body) {
  const CodesPanels<1> panels(form);
  const auto *zeros = static_cast<const std::int8_t *>(panel) + sizeof(float);
  const char *block = static_cast<const char *>(panel) + panels.blocks_at();
  std::size_t k = 0;
  for (std::size_t b = 0; b < form.blocks(); block += panels.block_bytes(panels.depth(b)), ++b) {
    const float scale = *reinterpret_cast<const float *>(block) * top_of_word(form.bits);
    const auto *words = reinterpret_cast<const std::uint32_t *>(block) + 1;
    const int per_word = 32 / form.bits, zero = form.zeros ? zeros[b] : 0;
    for (std::size_t i = 0; i < panels.depth(b); ++i, ++k) {
      const int up = 32 - form.bits * (static_cast<int>(i) % per_word + 1);
      const int q = static_cast<std::int32_t>(words[i / static_cast<std::size_t>(per_word)] << up) >> (32 - form.bits);
      body(k, static_cast<float>(q - zero) * scale);
    }
  }
}

}  // namespace

std::size_t packed_bytes(std::size_t n, const CodesForm &form) { return CodesPanels<1>(form).packed_bytes(n); }
void pack(void *packed, const CodesWeights &w) { CodesPanels<1>(w.form).pack(packed, w); }

void run(const CodesArgs &args) {
  const std::size_t panel_bytes = packed_bytes(1, args.form);
  for (std::size_t i = 0; i < args.m; ++i) {
    const float *a = args.a + static_cast<std::ptrdiff_t>(i) * args.lda;
    float *y = args.y + static_cast<std::ptrdiff_t>(i) * args.ldy;
    const char *panel = static_cast<const char *>(args.packed);
    for (std::size_t j = 0; j < args.n; ++j, panel += panel_bytes) {
      BlockedSum sum(*reinterpret_cast<const float *>(panel));
      each_weight(panel, args.form, [&](std::size_t k, float w) { sum.add(k, a[k], w); });
      const float above = sum.value() < args.lo ? args.lo : sum.value();
      y[j] = above > args.hi ? args.hi : above;
    }
  }
}

void unpack(const GemmRealPanel &to, const void *panel, const CodesForm &form) {
  *to.bias = *static_cast<const float *>(panel);
  each_weight(panel, form, [&](std::size_t k, float w) { to.elements[k * to.row] = w; });
}

}  // namespace qtn::kernels::gemm_codes_ref
