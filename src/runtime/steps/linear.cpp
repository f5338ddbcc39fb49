// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/linear.hpp"

#include <algorithm>

#include "kernels/kernel.hpp"

namespace qtn::runtime {
namespace {

// Small weights stay in the second level of cache while blocks of rows, in the first, pass by. Each task over large
// weights takes columns that fit there, and as many rows as it can, so that they are read from further away only once.
constexpr std::size_t kSmallWeights = 256 << 10, kSmallRows = 24 << 10, kLargeRows = 256 << 10;

// Below this there is nothing to share between threads.
constexpr std::size_t kWorthSharing = 1 << 20;

// Tasks are dealt evenly to 2 and 4 threads if their number is a multiple of this, or large.
constexpr std::size_t kEven = 4, kMany = 32;

kernels::GemmWeights of_group(const LinearWeights &w, std::size_t i) {
  return {w.weight.data() + i * w.out * w.k,
          static_cast<std::ptrdiff_t>(w.k),
          w.bias.data() + i * w.out,
          w.multiplier.data() + i * w.out,
          w.out,
          w.k};
}

PackedWeights pack_groups(const kernels::GemmKernel &kernel, const LinearWeights &w) {
  PackedWeights packed;
  const std::size_t each = round_up(kernel.packed_bytes(w.out, w.k), kAlignment);
  packed.bytes = AlignedBuffer(each * w.groups);
  for (std::size_t i = 0; i < w.groups; ++i) {
    packed.offsets.push_back(i * each);
    kernel.pack(packed.bytes.data() + i * each, of_group(w, i));
  }
  return packed;
}

}  // namespace

const kernels::GemmKernel &gemm_kernel(const LinearWeights &w, Isa isa) {
  return kernels::choose(kernels::gemm_kernels(), isa, [&w](const kernels::GemmKernel &kernel) {
    for (std::size_t i = 0; i < w.groups; ++i)
      if (!kernel.fits(of_group(w, i))) return false;
    return true;
  });
}

TaskGrid task_grid(const kernels::GemmKernel &kernel, std::size_t rows, std::size_t row_unit, std::size_t row_bytes,
                   std::size_t columns, std::size_t k) {
  const std::size_t weights = columns * k, panels = std::max<std::size_t>(1, ceil_div(columns, kernel.nr));
  const bool large = weights > kSmallWeights;
  const std::size_t units = std::max<std::size_t>(1, ceil_div(rows, row_unit));
  const std::size_t unit_bytes = row_unit * (large ? row_bytes : std::max(row_bytes, columns));
  const std::size_t most = (large ? kLargeRows : kSmallRows) / std::max<std::size_t>(1, unit_bytes);
  std::size_t row_blocks = ceil_div(units, std::max<std::size_t>(1, most));
  std::size_t column_blocks = large ? std::min(panels, ceil_div(weights, kSmallWeights)) : 1;
  const std::size_t tasks = row_blocks * column_blocks;
  if (rows * weights >= kWorthSharing && tasks < kMany && tasks % kEven != 0) {
    if (units >= 4 * round_up(row_blocks, kEven))
      row_blocks = round_up(row_blocks, kEven);
    else
      column_blocks = std::min(panels, round_up(column_blocks, kEven));
  }
  const std::size_t row_block = ceil_div(units, row_blocks) * row_unit;
  const std::size_t column_block = ceil_div(panels, column_blocks) * kernel.nr;
  return {rows, row_block, ceil_div(rows, row_block), column_block,
          std::max<std::size_t>(1, ceil_div(columns, column_block))};
}

LinearStep::LinearStep(const Product &product, const LinearWeights &w, const TaskGrid &grid, const PackCache &cache)
    : kernel_(product.kernel),
      packed_(cache(0, [&] { return pack_groups(kernel_, w); })),
      x_(product.x.slot),
      float_output_(product.y.form.dtype == QTN_FLOAT32),
      small_(std::all_of(w.multiplier.begin(), w.multiplier.end(), [](float m) { return m >= 0 && m < 1; })),
      groups_(w.groups),
      out_(w.out),
      k_(w.k),
      ldy_(product.ldy),
      range_(product.range),
      clamp_(product.clamp),
      grid_(grid) {
  kernel = kernel_.name;
  integer = true;
  reads = {x_};
  writes = {product.y.slot};
}

bool LinearStep::spread_output(std::ptrdiff_t pixel) {
  if (!float_output_) ldy_ = static_cast<std::size_t>(pixel);
  return !float_output_;
}

void LinearStep::run(const Context &c) const {
  const auto *x = c.tensor(x_).as<const std::uint8_t>();
  auto *y = static_cast<std::byte *>(c.tensor(output()).data());
  const std::size_t element = float_output_ ? sizeof(float) : 1;
  // At a good speed of the best kernels; slower ones are the more worth sharing.
  const std::size_t ns = static_cast<std::size_t>(macs) / 400 + grid_.rows * groups_ * out_ / 16;
  const std::size_t columns_of_rows = groups_ * grid_.column_blocks;
  for_ranges(c, grid_.row_blocks * columns_of_rows, ns, [&](std::size_t lane, std::size_t begin, std::size_t end) {
    std::byte *scratch = c.lane_scratch(lane);
    std::size_t held = SIZE_MAX;  // the rows that scratch holds
    for (std::size_t task = begin; task < end; ++task) {
      const std::size_t block = task / columns_of_rows, group = task % columns_of_rows / grid_.column_blocks;
      const std::size_t column = task % grid_.column_blocks * grid_.column_block;
      const std::size_t first = block * grid_.row_block, count = std::min(grid_.row_block, grid_.rows - first);
      const std::size_t wanted = groups_share_rows() ? block : block * groups_ + group;
      const Rows from = rows(x, {first, count, group, column, wanted != held}, scratch + product_bytes());
      held = wanted;
      kernels::GemmArgs args{};
      args.m = from.m;
      args.n = std::min(grid_.column_block, out_ - column);
      args.k = k_;
      args.a = from.a;
      args.lda = from.lda;
      args.packed = packed_->bytes.data() + packed_->offsets[group] + (column ? kernel_.packed_bytes(column, k_) : 0);
      args.y = y + (first * ldy_ + group * out_ + column) * element;
      args.ldy = static_cast<std::ptrdiff_t>(ldy_);
      args.range = range_;
      args.lo = clamp_.lo;
      args.hi = clamp_.hi;
      args.scratch = scratch;
      args.small = small_;
      args.picture = from.picture.strips ? &from.picture : nullptr;
      (float_output_ ? kernel_.run_f32 : kernel_.run_u8)(args);
      if (!float_output_)
        run_tails(c, {static_cast<std::uint8_t *>(args.y), args.ldy, first, count, group * out_ + column, args.n});
    }
  });
}

}  // namespace qtn::runtime
