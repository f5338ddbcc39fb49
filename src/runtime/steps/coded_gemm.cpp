// SPDX-License-Identifier: Apache-2.0
// Products of floats by a matrix that stays in integers. Few rows multiply what they read; for many, threads make
// floats of some columns at a time, as many as stay in cache, and multiply as by any floats. The sums are the same.
#include <algorithm>

#include "base/counted.hpp"
#include "base/size.hpp"
#include "kernels/gemm_codes/gemm_codes.hpp"
#include "kernels/kernel.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

using kernels::CodesForm;
using kernels::GemmCodesKernel;

// Above this, making floats once is faster than unpacking integers for every four rows.
constexpr std::size_t kFewRows = 8;

// What floats of some columns take of the second level of cache, and how many tasks there should be for threads.
constexpr std::size_t kBlockBytes = 256 << 10, kTasks = 8;

// Smaller matrices take little memory as floats, and no more time.
constexpr std::int64_t kWorthKeeping = 1024;

int stored_bits(qdtype dtype) {
  switch (dtype) {
    case QTN_INT8:
    case QTN_UINT8:
      return 8;
    case QTN_INT4:
    case QTN_UINT4:
    case QTN_INT2:
    case QTN_UINT2:
      return 4;
    default:
      return 0;
  }
}

/// What is taken off an integer to make it signed.
int middle(qdtype dtype) {
  switch (dtype) {
    case QTN_UINT8:
      return 128;
    case QTN_UINT4:
      return 8;
    case QTN_UINT2:
      return 2;
    default:
      return 0;
  }
}

/// Complements have the zero point -1 in place of 0: integers around 0 whose scale was negative. Kernels have no need of
/// it, as they take such scales.
CodesForm form_of(const CodedWeights &w) {
  const Quantizer &q = *w.weight.quantizer();
  const int shift = middle(q.dtype());
  const bool zeros = q.zero_point_range().lo < shift - 1 || q.zero_point_range().hi > shift;
  const std::size_t block = q.per_block() ? std::min(w.k, static_cast<std::size_t>(q.block_size())) : w.k;
  return {w.k, block, stored_bits(q.dtype()), zeros};
}

/// Scales of blocks of k, or of columns.
bool scales_columns(const CodedWeights &w) {
  const Quantizer &q = *w.weight.quantizer();
  const std::int32_t axis = q.axis() < 0 ? q.axis() + 2 : q.axis(), depth_axis = w.is_matrix ? 0 : 1;
  return q.per_tensor() || (axis == depth_axis) == q.per_block();
}

/// The scales of blocks of columns, and what is taken off their integers.
struct BlockGrids {
  explicit BlockGrids(const CodedWeights &w) : form(form_of(w)), scales(w.out * form.blocks()), zeros(scales.size()) {
    const Quantizer &q = *w.weight.quantizer();
    const std::size_t blocks = form.blocks();
    const int shift = middle(q.dtype());
    for (std::size_t j = 0; j < w.out; ++j)
      for (std::size_t b = 0; b < blocks; ++b) {
        const std::size_t number = q.per_tensor() ? 0 : w.is_matrix ? b * w.out + j : j * blocks + b;
        const auto scale = static_cast<float>(q.scales()[number]);
        zeros[j * blocks + b] = static_cast<std::int8_t>(q.zero_points()[number] - shift);
        scales[j * blocks + b] = is_complement(j * blocks + b) ? -scale : scale;
      }
  }

  bool is_complement(std::size_t block) const { return !form.zeros && zeros[block] == -1; }

  CodesForm form;
  std::vector<float> scales;
  std::vector<std::int8_t> zeros;
};

/// The integers of some columns, [columns][k].
void load_columns(const Tensor &codes, const BlockGrids &grids, std::size_t first, std::int8_t *q) {
  const Tensor plain = to_plain(codes);
  const auto *from = plain.as<const std::uint8_t>();
  const int shift = middle(codes.dtype());
  const CodesForm &form = grids.form;
  const auto columns = static_cast<std::size_t>(codes.dim(0));
  for (std::size_t block = first * form.blocks(), j = 0; j < columns; ++j)
    for (std::size_t k = 0; k < form.k; ++block) {
      const int flipped = grids.is_complement(block) ? -1 : 0;
      for (const std::size_t end = std::min(form.k, k + form.block); k < end; ++k)
        *q++ = static_cast<std::int8_t>((*from++ - shift) ^ flipped);
    }
}

PackedWeights pack(const GemmCodesKernel &kernel, const CodedWeights &w) {
  const BlockGrids grids(w);
  const std::size_t blocks = grids.form.blocks();
  const int turned[] = {1, 0}, straight[] = {0, 1};
  const Tensor codes = w.weight.with_quantizer(nullptr).permute(w.is_matrix ? turned : straight);
  PackedWeights packed;
  packed.bytes = AlignedBuffer(kernel.packed_bytes(w.out, grids.form));
  packed.offsets = {0};
  // Some columns at a time take little memory beside the result.
  constexpr std::size_t kColumns = 64;
  CountedVector<std::int8_t> q(std::min(kColumns, w.out) * w.k);
  for (std::size_t j = 0; j < w.out; j += kColumns) {
    const std::size_t end = std::min(w.out, j + kColumns);
    load_columns(codes.slice(0, static_cast<std::int64_t>(j), static_cast<std::int64_t>(end), 1), grids, j, q.data());
    kernel.pack(packed.bytes.data() + (j ? kernel.packed_bytes(j, grids.form) : 0),
                {grids.form, q.data(), grids.scales.data() + j * blocks, grids.zeros.data() + j * blocks,
                 w.bias.has_data() ? w.bias.as<const float>() + j : nullptr, end - j});
  }
  return packed;
}

class CodedGemmStep final : public TailedStep {
 public:
  CodedGemmStep(const Edge &x, const Edge &y, std::size_t rows, const CodedWeights &w, const ops::Clamp &clamp, Isa isa,
                const PackCache &cache)
      : kernel_(kernels::choose(kernels::gemm_codes_kernels(), isa)),
        reals_(kernels::choose(kernels::gemm_real_kernels(), isa)),
        form_(form_of(w)),
        x_(x.slot),
        rows_(rows),
        out_(w.out),
        clamp_(clamp),
        packed_(cache(0, [&] { return pack(kernel_, w); })) {
    const std::size_t fit = kBlockBytes / std::max<std::size_t>(1, reals_.packed_bytes(reals_.nr, row_bytes()));
    block_ = std::clamp(ceil_div(out_, reals_.nr) / kTasks, std::size_t{1}, std::max<std::size_t>(1, fit)) * reals_.nr;
    kernel = kernel_.name;
    float_mode = FloatMode::without_denormals;
    reads = {x.slot};
    writes = {y.slot};
    macs = static_cast<std::int64_t>(rows * w.out * w.k);
  }

  bool makes_matrices() const override { return true; }

  std::size_t lane_bytes() const override {
    return few() ? 0 : round_up(reals_.packed_bytes(std::min(block_, out_), row_bytes()), kAlignment);
  }

  void run(const Context &c) const override { few() ? multiply_integers(c) : multiply_floats(c); }

 private:
  bool few() const { return rows_ <= kFewRows; }
  std::size_t row_bytes() const { return form_.k * sizeof(float); }
  const std::byte *column(std::size_t j) const {
    return packed_->bytes.data() + (j ? kernel_.packed_bytes(j, form_) : 0);
  }

  void multiply_integers(const Context &c) const {
    const auto *x = c.tensor(x_).as<const float>();
    auto *y = c.tensor(output()).as<float>();
    const std::size_t unit = 4 * kernel_.nr;
    const std::size_t ns = packed_->bytes.size() / 10 * ceil_div(rows_, 4);
    for_ranges(c, ceil_div(out_, unit), ns, [&](std::size_t, std::size_t begin, std::size_t end) {
      const std::size_t j = begin * unit, columns = std::min(end * unit, out_) - j;
      kernel_.run({form_, rows_, columns, x, static_cast<std::ptrdiff_t>(form_.k), column(j), y + j,
                   static_cast<std::ptrdiff_t>(out_), clamp_.lo, clamp_.hi});
      end_block(c, y, j, columns);
    });
  }

  void multiply_floats(const Context &c) const {
    const auto *x = c.tensor(x_).as<const float>();
    auto *y = c.tensor(output()).as<float>();
    kernels::GemmArgs args{};
    args.m = rows_;
    args.k = row_bytes();
    args.a = reinterpret_cast<const std::uint8_t *>(x);
    args.lda = static_cast<std::ptrdiff_t>(row_bytes());
    args.ldy = static_cast<std::ptrdiff_t>(out_);
    args.lo = clamp_.lo;
    args.hi = clamp_.hi;
    for_chunks(c, ceil_div(out_, block_), static_cast<std::size_t>(macs) / 100,
               [&](std::size_t lane, std::size_t chunk) {
                 const std::size_t j = chunk * block_, columns = std::min(block_, out_ - j);
                 std::byte *floats = c.lane_scratch(lane);
                 for (std::size_t at = 0; at < columns; at += kernel_.nr)
                   kernel_.unpack(reals_.panel(floats, columns, form_.k, at), column(j + at), form_);
                 kernels::GemmArgs some = args;
                 some.n = columns;
                 some.packed = floats;
                 some.y = y + j;
                 reals_.run(some);
                 end_block(c, y, j, columns);
               });
  }

  void end_block(const Context &c, float *y, std::size_t j, std::size_t columns) const {
    run_tails(c, {reinterpret_cast<std::uint8_t *>(y + j), static_cast<std::ptrdiff_t>(out_ * sizeof(float)), 0, rows_,
                  j * sizeof(float), columns * sizeof(float)});
  }

  const GemmCodesKernel &kernel_;
  const kernels::GemmRealKernel &reals_;
  CodesForm form_;
  SlotId x_;
  std::size_t rows_, out_, block_;
  ops::Clamp clamp_;
  PackedPtr packed_;
};

}  // namespace

bool stays_coded(const CodedWeights &w, Isa isa) {
  if (!w.weight.quantized() || w.weight.count() < kWorthKeeping) return false;
  const Quantizer &q = *w.weight.quantizer();
  if (stored_bits(q.dtype()) == 0 || q.zeros_are_floats() || q.divides_back() || !scales_columns(w)) return false;
  const CodesForm form = form_of(w);
  const auto per_word = static_cast<std::size_t>(32 / form.bits);
  return (form.block % per_word == 0 || form.block == form.k) && q.least_scale() >= kernels::kLeastScale &&
         kernels::choose(kernels::gemm_codes_kernels(), isa).isa != Isa::scalar;
}

StepPtr make_coded_gemm(const Edge &x, const Edge &y, std::size_t rows, const CodedWeights &w, const ops::Clamp &clamp,
                        Isa isa, const PackCache &cache) {
  return std::make_unique<CodedGemmStep>(x, y, rows, w, clamp, isa, cache);
}

}  // namespace qtn::runtime
