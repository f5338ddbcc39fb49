// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/linear.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/size.hpp"
#include "kernels/kernel.hpp"
#include "kernels/sum_blocks.hpp"
#include "runtime/shared_packs.hpp"

namespace qtn::runtime {
namespace {

// Small weights stay in the second level of cache while blocks of rows, in the first, pass by; those of an image share most
// of what they read with the rows above them, the more the larger they are. Each task over large weights takes columns that
// fit there, and as many rows as it can, so that they are read from further away only once.
constexpr std::size_t kSmallWeights = 256 << 10, kSmallRows = 24 << 10, kSmallLines = 64 << 10, kLargeRows = 256 << 10;

// Blocks of larger weights are each multiplied by all rows before the next one: those are read again from a nearer level
// of cache than these.
constexpr std::size_t kFarWeights = 1 << 20;

// Rows that are a multiple of this apart meet in one set of the first level of cache, which holds lines of no more of
// them than this. Then a part of each is copied, of at most so many bytes, which are whole blocks of its sums.
constexpr std::ptrdiff_t kSetBytes = 4096;
constexpr std::size_t kSetRows = 8, kBlock = kernels::kSumBlock * sizeof(float), kMostPart = 6 * kBlock;
// Bytes of rows of which a part is copied, and columns that meet it: rows are copied again for each block of these, which
// pass by again for each block of rows.
constexpr std::size_t kCopiedRows = 512 << 10, kCopiedColumns = 1024;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Blocks of a result that is not written stay in the second level of cache.
constexpr std::size_t kHeldBytes = 128 << 10;

// Below this there is nothing to share between threads.
constexpr std::size_t kWorthSharing = 1 << 20;

// Tasks are dealt evenly to 2 and 4 threads if their number is a multiple of this, or large.
constexpr std::size_t kEven = 4, kMany = 32;

kernels::GemmWeights of_group(const LinearWeights &w, std::size_t i) {
  return {w.filter(i * w.out),
          static_cast<std::ptrdiff_t>(w.k),
          w.bias.data() + i * w.out,
          w.multiplier.data() + i * w.out,
          w.out,
          w.k};
}

/// pack(to, group) for each of them; k in bytes.
template <class Pack>
PackedWeights pack_groups(const kernels::GemmForm &form, std::size_t groups, std::size_t out, std::size_t k,
                          const Pack &pack) {
  PackedWeights packed;
  const std::size_t each = round_up(form.packed_bytes(out, k), kAlignment);
  packed.bytes = AlignedBuffer((Size(each) * groups).value());
  for (std::size_t i = 0; i < groups; ++i) {
    packed.offsets.push_back(i * each);
    pack(packed.bytes.data() + i * each, i);
  }
  return packed;
}

PackedWeights pack_groups(const kernels::GemmKernel &kernel, const LinearWeights &w) {
  return pack_groups(kernel, w.groups, w.out, w.k,
                     [&](std::byte *to, std::size_t i) { kernel.pack(to, of_group(w, i)); });
}

PackedWeights pack_groups(const kernels::GemmRealKernel &kernel, const RealWeights &w) {
  const Tensor ordered = w.in_order();
  const auto *weight = ordered.as<const float>(), *bias = w.bias.has_data() ? w.bias.as<const float>() : nullptr;
  const auto out = static_cast<std::ptrdiff_t>(w.out), k = static_cast<std::ptrdiff_t>(w.k);
  return pack_groups(kernel, w.groups, w.out, w.k * sizeof(float), [&](std::byte *to, std::size_t i) {
    const auto group = static_cast<std::ptrdiff_t>(i);
    kernel.pack(to, {weight + group * out * k, w.is_matrix ? 1 : k, w.is_matrix ? out : 1,
                     bias ? bias + group * out : nullptr, w.out, w.k});
  });
}

/// What is cut into tasks.
struct Sizes {
  std::size_t rows, row_unit, columns, panel;

  std::size_t units() const { return std::max<std::size_t>(1, ceil_div(rows, row_unit)); }
  std::size_t panels() const { return std::max<std::size_t>(1, ceil_div(columns, panel)); }
};

/// Into about as many blocks.
TaskGrid cut(const Sizes &of, std::size_t weights, std::size_t row_blocks, std::size_t column_blocks) {
  const std::size_t units = of.units(), panels = of.panels();
  row_blocks = std::min(row_blocks, units);
  column_blocks = std::min(column_blocks, panels);
  const std::size_t tasks = row_blocks * column_blocks;
  if (of.rows * weights >= kWorthSharing && tasks < kMany && tasks % kEven != 0) {
    if (units >= 4 * round_up(row_blocks, kEven))
      row_blocks = round_up(row_blocks, kEven);
    else
      column_blocks = std::min(panels, round_up(column_blocks, kEven));
  }
  const std::size_t row_block = ceil_div(units, row_blocks) * of.row_unit;
  const std::size_t column_block = ceil_div(panels, column_blocks) * of.panel;
  return {of.rows,
          row_block,
          ceil_div(of.rows, row_block),
          column_block,
          std::max<std::size_t>(1, ceil_div(of.columns, column_block)),
          weights > kFarWeights};
}

/// In blocks of rows of about `small_rows` bytes where the weights are small.
TaskGrid cut_by_size(const Sizes &of, std::size_t row_bytes, std::size_t k, std::size_t small_rows) {
  const std::size_t weights = of.columns * k;
  const bool large = weights > kSmallWeights;
  const std::size_t unit_bytes =
      std::max<std::size_t>(1, of.row_unit * (large ? row_bytes : std::max(row_bytes, of.columns)));
  const std::size_t most = large ? (kLargeRows + unit_bytes / 2) / unit_bytes : small_rows / unit_bytes;
  return cut(of, weights, ceil_div(of.units(), std::max<std::size_t>(1, most)),
             large ? ceil_div(weights, kSmallWeights) : 1);
}

}  // namespace

const kernels::GemmKernel &gemm_kernel(const LinearWeights &w, Isa isa) {
  if (w.kernel) return *w.kernel;
  return kernels::choose(kernels::gemm_kernels(), isa, [&w](const kernels::GemmKernel &kernel) {
    if (!kernels::fills_step(w.k, kernel.run_unit)) return false;
    for (std::size_t i = 0; i < w.groups; ++i)
      if (!kernel.fits(of_group(w, i))) return false;
    return true;
  });
}

TaskGrid task_grid(const kernels::GemmForm &form, std::size_t rows, std::size_t row_bytes, std::size_t columns,
                   std::size_t k) {
  return cut_by_size({rows, form.mr, columns, form.nr}, row_bytes, k, kSmallRows);
}

TaskGrid image_grid(const kernels::GemmForm &form, std::size_t pixels, std::size_t width, std::size_t pixel_bytes,
                    std::size_t columns, std::size_t k) {
  return cut_by_size({pixels, width, columns, form.nr}, pixel_bytes, k, kSmallLines);
}

TaskGrid matrix_grid(const Product &p, std::size_t rows, std::ptrdiff_t lda) {
  const bool meet = p.x.form.dtype == QTN_FLOAT32 && lda % kSetBytes == 0 && std::min(rows, p.form.mr) > kSetRows;
  if (!meet) return task_grid(p.form, rows, p.k, p.out, p.k);
  const std::size_t part = round_up(ceil_div(p.k, ceil_div(p.k, kMostPart)), kBlock);
  TaskGrid grid = cut({rows, p.form.mr, p.out, p.form.nr}, p.out * p.k, ceil_div(rows * part, kCopiedRows),
                      ceil_div(p.out, kCopiedColumns));
  grid.part = part;
  return grid;
}

Product integer_product(const Edge &x, const Edge &y, std::size_t ldy, const LinearWeights &w,
                        const QuantizedRange &range, const ops::Clamp &clamp, const kernels::GemmKernel &kernel,
                        const PackCache &cache) {
  const bool small = std::all_of(w.multiplier.begin(), w.multiplier.end(), [](float m) { return m >= 0 && m < 1; });
  return {x,
          y,
          ldy,
          w.groups,
          w.out,
          w.k,
          kernel,
          y.form.dtype == QTN_FLOAT32 ? kernel.run_f32 : kernel.run_u8,
          cache(0, [&] { return pack_groups(kernel, w); }),
          clamp,
          range,
          small};
}

Product dynamic_product(const DynamicOperand &x, const Edge &y, std::size_t ldy, const DynamicWeights &w,
                        const ops::Clamp &clamp, const kernels::GemmKernel &kernel, Isa isa, const PackCache &cache) {
  const LinearWeights &l = w.integers;
  const PackedPtr packed = cache(0, [&] { return RunGrid::with_columns(pack_groups(kernel, l), kernel, w); });
  Product product{x.q, y, ldy, l.groups, l.out, l.k, kernel, kernel.run_rows, packed, clamp};
  product.grid.emplace(x, w, kernel, *packed, isa);
  return product;
}

Product real_product(const Edge &x, const Edge &y, std::size_t ldy, const RealWeights &w, const ops::Clamp &clamp,
                     const kernels::GemmRealKernel &kernel, const PackCache &cache) {
  const auto pack = [&] { return SharedPacks::get(w, kernel, [&] { return pack_groups(kernel, w); }); };
  return {x, y, ldy, w.groups, w.out, w.k * sizeof(float), kernel, kernel.run, cache(0, pack), clamp};
}

LinearStep::LinearStep(const Product &product, const TaskGrid &grid)
    : product_(product), element_(dtype_size(product.y.form.dtype)), grid_(grid) {
  kernel = product.form.name;
  integer = product.x.form.dtype == QTN_UINT8;
  if (!integer) float_mode = FloatMode::without_denormals;
  reads = {product.x.slot};
  writes = {product.y.slot};
  if (product.grid) reads.insert(reads.end(), {product.grid->x().scales, product.grid->x().zeros});
}

bool LinearStep::spread_output(std::ptrdiff_t pixel) {
  if (makes_matrices()) return false;
  product_.ldy = static_cast<std::size_t>(pixel);
  return true;
}

void LinearStep::multiply_by_parts(kernels::GemmArgs args, std::byte *copy) const {
  const std::size_t row = copied_row();
  const std::uint8_t *from = args.a;
  const std::ptrdiff_t lda = args.lda;
  args.a = reinterpret_cast<const std::uint8_t *>(copy);
  args.lda = static_cast<std::ptrdiff_t>(row);
  for (std::size_t at = 0; at < product_.k; at += grid_.part) {
    const kernels::GemmPart part{at, std::min(grid_.part, product_.k - at)};
    for (std::size_t r = 0; r < args.m; ++r)
      std::memcpy(copy + r * row, from + static_cast<std::ptrdiff_t>(r) * lda + at, part.length);
    const bool last = at + part.length == product_.k;
    args.lo = last ? product_.clamp.lo : -kInfinity;
    args.hi = last ? product_.clamp.hi : kInfinity;
    args.part = &part;
    product_.run(args);
  }
}

void LinearStep::multiply(const Context &c, const kernels::GemmArgs &task_args, std::byte *scratch, const Task &task,
                          std::size_t at) const {
  kernels::GemmArgs args = task_args;
  const std::size_t step = held_rows_ != 0 ? held_rows_ : args.m;
  std::byte *held = scratch + lane_bytes() - held_bytes();
  args.ldy = static_cast<std::ptrdiff_t>(held_rows_ != 0 ? args.n : product_.ldy);
  auto *y = static_cast<std::uint8_t *>(c.tensor(output()).data());
  kernels::GemmRows rows;
  if (product_.grid) {
    rows = *task_args.rows;
    args.rows = &rows;
  }
  for (std::size_t done = 0; done < task_args.m; done += step) {
    const std::size_t row = task.first + done;
    args.m = std::min(step, task_args.m - done);
    args.a = task_args.a + static_cast<std::ptrdiff_t>(done) * args.lda;
    args.y = held_rows_ != 0 ? held : reinterpret_cast<std::byte *>(y) + (row * product_.ldy + at) * element_;
    grid_.part ? multiply_by_parts(args, scratch) : product_.run(args);
    run_tails(c, {static_cast<std::uint8_t *>(args.y), args.ldy * static_cast<std::ptrdiff_t>(element_), row,
                  args.image ? task.count : args.m, at * element_, args.n * element_, y});
    if (!product_.grid) continue;
    rows.scale += args.m;
    rows.zero += args.m;
  }
}

bool LinearStep::add_to_rows(const Tensor &row, const ops::Clamp &clamp) {
  if (!integer || !makes_matrices() || product_.y.form.dtype != QTN_FLOAT32 || has_tails() || product_.grid ||
      !product_.addend.empty() || product_.clamp.lo != -kInfinity || product_.clamp.hi != kInfinity)
    return false;
  const auto *from = row.as<const float>();
  product_.addend.assign(from, from + product_.out);
  product_.addend.resize(round_up(product_.out, product_.form.nr));
  product_.clamp = clamp;
  return true;
}

bool LinearStep::hold_blocks() {
  if (!makes_matrices() || product_.y.form.dtype != QTN_FLOAT32 || held_rows_ != 0) return false;
  const std::size_t parts = ceil_div(grid_.row_block * held_row(), kHeldBytes);
  held_rows_ = round_up(ceil_div(grid_.row_block, std::max<std::size_t>(1, parts)), product_.form.mr);
  return true;
}

void LinearStep::run(const Context &c) const {
  const Product &p = product_;
  const auto *x = static_cast<const std::uint8_t *>(c.tensor(p.x.slot).data());
  // At a good speed of the best kernels; slower ones are the more worth sharing.
  const std::size_t ns = static_cast<std::size_t>(macs) / (integer ? 400 : 100) + grid_.rows * p.groups * p.out / 16;
  const std::size_t columns_of_rows = p.groups * grid_.column_blocks;
  const bool columns_first = grid_.columns_first && rows_bytes() == 0;
  for_ranges(c, grid_.row_blocks * columns_of_rows, ns, [&](std::size_t lane, std::size_t begin, std::size_t end) {
    std::byte *scratch = c.lane_scratch(lane);
    std::size_t held = SIZE_MAX;  // the rows that scratch holds
    for (std::size_t task = begin; task < end; ++task) {
      const auto [block, across] = grid_.place(task, columns_of_rows, columns_first);
      const std::size_t group = across / grid_.column_blocks;
      const std::size_t column = across % grid_.column_blocks * grid_.column_block;
      const std::size_t first = block * grid_.row_block, count = std::min(grid_.row_block, grid_.rows - first);
      const std::size_t wanted = groups_share_rows() ? block : block * p.groups + group;
      const Rows from = rows(x, {first, count, group, column, wanted != held}, scratch + product_bytes());
      held = wanted;
      const std::size_t at = group * p.out + column;
      kernels::GemmArgs args{};
      args.m = from.m;
      args.n = std::min(grid_.column_block, p.out - column);
      args.k = p.k;
      args.a = from.a;
      args.lda = from.lda;
      args.packed = p.packed->bytes.data() + p.packed->offsets[group] + (column ? p.form.packed_bytes(column, p.k) : 0);
      args.range = p.range;
      args.lo = p.clamp.lo;
      args.hi = p.clamp.hi;
      args.scratch = scratch;
      args.small = p.small;
      args.addend = p.addend.empty() ? nullptr : p.addend.data() + column;
      args.image = from.image.strips ? &from.image : nullptr;
      kernels::GemmRows rows_on_grid;
      if (p.grid) p.grid->describe(c, first, group, column, scratch + grid_at(), rows_on_grid, args);
      multiply(c, args, scratch, {first, count, group, column, false}, at);
    }
  });
}

}  // namespace qtn::runtime
