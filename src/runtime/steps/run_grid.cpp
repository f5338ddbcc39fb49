// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/run_grid.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/kernel.hpp"

namespace qtn::runtime {

PackedWeights RunGrid::with_columns(PackedWeights packed, const kernels::GemmForm &form, const DynamicWeights &w) {
  const LinearWeights &l = w.integers;
  const std::size_t panels = round_up(l.out, form.nr), list = round_up(l.groups * panels * sizeof(float), kAlignment);
  const std::size_t begin = round_up(packed.bytes.size(), kAlignment);
  AlignedBuffer all(begin + (w.zeros.empty() ? 2 : 3) * list);
  std::memcpy(all.data(), packed.bytes.data(), packed.bytes.size());
  std::memset(all.data() + packed.bytes.size(), 0, all.size() - packed.bytes.size());
  for (std::size_t at = begin; at < all.size(); at += list) packed.offsets.push_back(at);
  packed.bytes = std::move(all);
  const auto column = [&](std::size_t which) { return packed.bytes.data() + begin + which * list; };
  auto *sums = reinterpret_cast<std::int32_t *>(column(0));
  auto *bias = reinterpret_cast<float *>(column(1));
  for (std::size_t o = 0; o < l.groups * l.out; ++o) {
    const std::size_t at = o / l.out * panels + o % l.out;
    sums[at] = std::reduce(l.filter(o), l.filter(o) + l.k, 0);
    if (!w.bias.empty()) bias[at] = w.bias[o];
    if (w.zeros.empty()) continue;
    reinterpret_cast<std::int32_t *>(column(2))[at] = w.zeros[o];
  }
  return packed;
}

RunGrid::RunGrid(const DynamicOperand &x, const DynamicWeights &w, const kernels::GemmForm &form,
                 const PackedWeights &packed, Isa isa)
    : x_(x),
      dot_(kernels::choose(kernels::dot_kernels(), isa)),
      sums_(reinterpret_cast<const std::int32_t *>(packed.bytes.data() + packed.offsets[w.integers.groups])),
      zeros_(w.zeros.empty()
                 ? nullptr
                 : reinterpret_cast<const std::int32_t *>(packed.bytes.data() + packed.offsets[w.integers.groups + 2])),
      bias_(reinterpret_cast<const float *>(packed.bytes.data() + packed.offsets[w.integers.groups + 1])),
      panels_(round_up(w.integers.out, form.nr)),
      panel_(form.nr),
      k_(static_cast<std::uint32_t>(w.integers.k)),
      shift_(static_cast<std::uint32_t>(form.shift)) {}

std::size_t RunGrid::scratch_bytes(std::size_t rows, std::size_t columns) const {
  if (x_.by_row) return 0;
  return 2 * round_up(rows * sizeof(float), kAlignment) +
         (zeros_ ? round_up(round_up(columns, panel_) * sizeof(std::int32_t), kAlignment) : 0);
}

void RunGrid::describe(const Context &c, std::size_t first, std::size_t group, std::size_t column, std::byte *scratch,
                       kernels::GemmRows &rows, kernels::GemmArgs &args) const {
  const std::size_t at = group * panels_ + column;
  rows = {c.tensor(x_.scales).as<const float>(), c.tensor(x_.zeros).as<const std::int32_t>(), sums_ + at, bias_ + at};
  args.rows = &rows;
  if (x_.by_row) {
    rows.scale += first;
    rows.zero += first;
    return;
  }
  auto *scales = reinterpret_cast<float *>(scratch);
  auto *of_rows = reinterpret_cast<std::int32_t *>(scratch + round_up(args.m * sizeof(float), kAlignment));
  const std::int32_t zero = *rows.zero;
  std::fill_n(scales, args.m, *rows.scale);
  rows.scale = scales;
  rows.zero = of_rows;
  if (!zeros_) return static_cast<void>(std::fill_n(of_rows, args.m, zero));
  // A kernel takes off one product of rows and columns: the sums of rows by the zero points of weights. The other is a
  // bias. Both may wrap on the way to what fits.
  for (std::size_t i = 0; i < args.m; ++i)
    of_rows[i] = dot_.sum(args.a + static_cast<std::ptrdiff_t>(i) * args.lda, args.k, false);
  auto *bias = of_rows + round_up(args.m * sizeof(float), kAlignment) / sizeof(std::int32_t);
  for (std::size_t j = 0; j < round_up(args.n, panel_); ++j) {
    const auto sum = static_cast<std::uint32_t>(rows.sums[j]), of_weight = static_cast<std::uint32_t>(zeros_[at + j]);
    bias[j] = static_cast<std::int32_t>(shift_ * sum - static_cast<std::uint32_t>(zero) * (sum - k_ * of_weight));
  }
  rows.sums = zeros_ + at;
  args.bias = bias;
}

}  // namespace qtn::runtime
