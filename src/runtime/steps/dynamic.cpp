// SPDX-License-Identifier: Apache-2.0
// Products of floats that are brought to 8 bits on the way, on the grid that they give themselves.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/dot/dot.hpp"
#include "kernels/grid/grid.hpp"
#include "kernels/kernel.hpp"
#include "ops/common/integer_linear.hpp"
#include "runtime/steps/linear.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class DynamicQuantizeStep final : public Step {
 public:
  DynamicQuantizeStep(const char *who, const DynamicOperand &x, const ops::OwnGrid &grid, Isa isa)
      : who_(who), x_(x), grid_(grid), kernel_(kernels::choose(kernels::grid_kernels(), isa)) {
    op = kernel = "DynamicQuantizeLinear";
    integer = true;
    reads = {x.real};
    writes = {x.q, x.scales, x.zeros};
  }

  void run(const Context &c) const override {
    grid_.granularity == ops::Granularity::row ? quantize_rows(c) : quantize_all(c);
  }

 private:
  static constexpr std::size_t kTaskElements = 16384;

  void quantize_all(const Context &c) const {
    const Tensor &x = c.tensor(x_.real);
    const ScaleZero grid = ops::dynamic_grid(who_, x, grid_.numerics);
    const auto scale = static_cast<float>(grid.scale);
    const auto zero = static_cast<std::int32_t>(grid.zero_point);
    std::fill_n(c.tensor(x_.scales).as<float>(), x_.rows, scale);
    std::fill_n(c.tensor(x_.zeros).as<std::int32_t>(), x_.rows, zero);
    const bool divides = grid_.numerics == Numerics::onnx;
    ops::quantize_8bit({x.as<const float>(), static_cast<std::size_t>(x.count())},
                       {divides ? Rounding::division : Rounding::reciprocal, divides ? scale : 1.0f / scale, zero},
                       false, c.tensor(x_.q).data());
  }

  void quantize_rows(const Context &c) const {
    const auto *x = c.tensor(x_.real).as<const float>();
    auto *q = c.tensor(x_.q).as<std::uint8_t>();
    auto *scales = c.tensor(x_.scales).as<float>();
    auto *zeros = c.tensor(x_.zeros).as<std::int32_t>();
    const std::size_t in_task = std::max<std::size_t>(1, kTaskElements / x_.k);
    for_chunks(c, ceil_div(x_.rows, in_task), in_task * x_.k / 8, [&](std::size_t, std::size_t task) {
      const std::size_t first = task * in_task, last = std::min(first + in_task, x_.rows);
      for (std::size_t i = first; i < last; ++i) {
        const ScaleZero grid = ops::dynamic_row_grid(kernel_.range(x + i * x_.k, x_.k));
        scales[i] = static_cast<float>(grid.scale);
        zeros[i] = static_cast<std::int32_t>(grid.zero_point);
      }
      kernel_.quantize({last - first, x_.k, x + first * x_.k, q + first * x_.k, kernels::Cell::u8, Rounding::division,
                        kernels::GridPer::row, scales + first, zeros + first, 0, 255, false});
    });
    if (std::any_of(scales, scales + x_.rows, [](float s) { return std::isnan(s); })) ops::fail_without_scale(who_);
  }

  const char *who_;
  DynamicOperand x_;
  ops::OwnGrid grid_;
  const kernels::GridKernel &kernel_;
};

/// uint8 weights are read as the int8 grid 128 further down.
constexpr std::uint8_t kFlip = 0x80;

/// [k][n] of either type -> int8 [n][k].
PackedWeights transposed(const Tensor &w) {
  PackedWeights packed;
  const auto count = static_cast<std::size_t>(w.count());
  packed.bytes = AlignedBuffer(count);
  const Shape shape{w.dim(1), w.dim(0)};
  const Tensor to(w.dtype(), shape, contiguous_strides(shape), packed.bytes.data(), nullptr);
  copy_elements(to, w.view(shape, {w.strides()[1], w.strides()[0]}));
  if (w.dtype() == QTN_UINT8)
    for (std::size_t i = 0; i < count; ++i) packed.bytes.as<std::uint8_t>()[i] ^= kFlip;
  return packed;
}

/// One for each column; empty where all are 0.
std::vector<std::int32_t> zero_points(const Tensor &w, const Tensor &given) {
  std::vector<std::int32_t> zeros(static_cast<std::size_t>(w.dim(1)), w.dtype() == QTN_UINT8 ? -128 : 0);
  if (given.has_data()) {
    const std::vector<std::int64_t> values = int_values(given, "zero point");
    for (std::size_t c = 0; c < zeros.size(); ++c)
      zeros[c] += static_cast<std::int32_t>(values[values.size() == 1 ? 0 : c]);
  }
  if (std::all_of(zeros.begin(), zeros.end(), [](std::int32_t z) { return z == 0; })) zeros.clear();
  return zeros;
}

class DynamicProductStep final : public Step {
 public:
  DynamicProductStep(const DynamicOperand &x, const DynamicProduct &p, const DynamicConstants &constants,
                     const std::optional<ops::Clamp> &clamp, Isa isa, const PackCache &cache)
      : kernel_(kernels::choose(kernels::dot_kernels(), isa)),
        x_(x),
        p_(p),
        packed_(cache(0, [&] { return transposed(constants.weight); })),
        zeros_(zero_points(constants.weight, constants.zero)),
        scales_(float_values(constants.scales, "scales")),
        bias_(constants.bias.has_data() ? constants.bias.to_contiguous() : Tensor()),
        clamp_(clamp),
        k_(static_cast<std::size_t>(constants.weight.dim(0))),
        n_(static_cast<std::size_t>(constants.weight.dim(1))) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.q, x.scales, x.zeros};
    writes = {p.y, p.multipliers, p.sums};
    macs = static_cast<std::int64_t>(x.rows * n_ * k_);
  }

  void run(const Context &c) const override {
    if (x_.rows == 0) return;
    const auto *q = c.tensor(x_.q).as<const std::uint8_t>();
    const float scale = *c.tensor(x_.scales).as<const float>();
    auto *multipliers = c.tensor(p_.multipliers).as<float>();
    for (std::size_t i = 0; i < n_; ++i) multipliers[i] = scale * scales_[scales_.size() == 1 ? 0 : i];
    auto *row_sums = c.tensor(p_.sums).as<std::int32_t>();
    if (!zeros_.empty())
      for (std::size_t i = 0; i < x_.rows; ++i) row_sums[i] = kernel_.sum(q + i * k_, k_, false);
    ops::multiply_columns(kernel_, {.m = x_.rows,
                                    .n = n_,
                                    .k = k_,
                                    .x = q,
                                    .ldx = static_cast<std::ptrdiff_t>(k_),
                                    .w = packed_->bytes.data(),
                                    .ldw = static_cast<std::ptrdiff_t>(k_),
                                    .signed_w = true,
                                    .zx = *c.tensor(x_.zeros).as<const std::int32_t>(),
                                    .zw = zeros_.empty() ? nullptr : zeros_.data(),
                                    .x_sum = row_sums,
                                    .bias = nullptr,
                                    .multiplier = multipliers,
                                    .addend = bias_.has_data() ? bias_.as<const float>() : nullptr,
                                    .y = c.tensor(p_.y).as<float>(),
                                    .ldy = static_cast<std::ptrdiff_t>(n_)});
    if (clamp_) ops::clamp_elements(c.tensor(p_.y), *clamp_);
  }

 private:
  const kernels::DotKernel &kernel_;
  DynamicOperand x_;
  DynamicProduct p_;
  PackedPtr packed_;
  std::vector<std::int32_t> zeros_;
  std::vector<float> scales_;
  Tensor bias_;
  std::optional<ops::Clamp> clamp_;
  std::size_t k_, n_;
};

/// Behind the packed weights, the sums of their columns and their bias, filled up with zeros to whole panels.
struct PackedColumns {
  std::size_t sums, bias, end;  ///< offsets

  PackedColumns(const kernels::GemmKernel &gemm, std::size_t n, std::size_t k)
      : sums(round_up(gemm.packed_bytes(n, k), kAlignment)),
        bias(sums + round_up(round_up(n, gemm.nr) * sizeof(std::int32_t), kAlignment)),
        end(bias + round_up(n, gemm.nr) * sizeof(float)) {}
};

/// Weights around 0, as the best kernel for them packs them; the offset is the number of the kernel.
PackedWeights packed_products(const DynamicConstants &constants, Isa isa) {
  const Tensor &weight = constants.weight;
  const auto k = static_cast<std::size_t>(weight.dim(0)), n = static_cast<std::size_t>(weight.dim(1));
  const PackedWeights rows = transposed(weight);
  const Shape shape{weight.dim(1), weight.dim(0)};
  LinearWeights w;
  w.groups = 1;
  w.out = n;
  w.k = k;
  w.weight = Tensor(QTN_INT8, shape, contiguous_strides(shape), rows.bytes.data(), nullptr);
  w.bias.resize(n);
  w.multiplier = float_values(constants.scales, "scales");
  if (w.multiplier.size() == 1) w.multiplier.resize(n, w.multiplier[0]);
  const kernels::GemmKernel &gemm = gemm_kernel(w, isa);
  const PackedColumns columns(gemm, n, k);
  PackedWeights packed;
  packed.offsets = {static_cast<std::size_t>(&gemm - kernels::gemm_kernels().data())};
  packed.bytes = AlignedBuffer(columns.end);
  std::memset(packed.bytes.data(), 0, columns.end);
  gemm.pack(packed.bytes.data(),
            {w.filter(0), static_cast<std::ptrdiff_t>(k), w.bias.data(), w.multiplier.data(), n, k});
  auto *sums = reinterpret_cast<std::int32_t *>(packed.bytes.data() + columns.sums);
  for (std::size_t i = 0; i < n; ++i) sums[i] = std::reduce(w.filter(i), w.filter(i) + k, 0);
  if (!constants.bias.has_data()) return packed;
  const std::vector<float> bias = float_values(constants.bias, "bias");
  auto *to = reinterpret_cast<float *>(packed.bytes.data() + columns.bias);
  for (std::size_t i = 0; i < n; ++i) to[i] = bias[bias.size() == 1 ? 0 : i];
  return packed;
}

/// The same by the kernels of packed weights, which take a grid for each row.
class PackedProductStep final : public TailedStep {
 public:
  PackedProductStep(const DynamicOperand &x, const DynamicProduct &p, const DynamicConstants &constants,
                    const std::optional<ops::Clamp> &clamp, const PackedPtr &packed)
      : kernel_(kernels::gemm_kernels()[packed->offsets[0]]),
        x_(x),
        packed_(packed),
        clamp_(clamp.value_or(ops::Clamp{-kInfinity, kInfinity})),
        n_(static_cast<std::size_t>(constants.weight.dim(1))),
        columns_(kernel_, n_, x.k),
        grid_(task_grid(kernel_, x.rows, x.k, n_, x.k)) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.q, x.scales, x.zeros};
    writes = {p.y};
    macs = static_cast<std::int64_t>(x.rows * n_ * x.k);
  }

  bool makes_matrices() const override { return true; }
  std::size_t lane_bytes() const override { return round_up(kernel_.scratch_bytes(grid_.row_block, x_.k), kAlignment); }

  void run(const Context &c) const override {
    const std::size_t ns = static_cast<std::size_t>(macs) / 400 + x_.rows * n_ / 16;
    for_chunks(c, grid_.row_blocks * grid_.column_blocks, ns,
               [&](std::size_t lane, std::size_t task) { multiply(c, lane, task); });
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  void multiply(const Context &c, std::size_t lane, std::size_t task) const {
    const auto [block, across] = grid_.place(task, grid_.column_blocks, grid_.columns_first);
    const std::size_t column = across * grid_.column_block, first = block * grid_.row_block;
    const std::byte *packed = packed_->bytes.data();
    const kernels::GemmRows rows{c.tensor(x_.scales).as<const float>() + first,
                                 c.tensor(x_.zeros).as<const std::int32_t>() + first,
                                 reinterpret_cast<const std::int32_t *>(packed + columns_.sums) + column,
                                 reinterpret_cast<const float *>(packed + columns_.bias) + column};
    kernels::GemmArgs args{};
    args.m = std::min(grid_.row_block, x_.rows - first);
    args.n = std::min(grid_.column_block, n_ - column);
    args.k = x_.k;
    args.a = c.tensor(x_.q).as<const std::uint8_t>() + first * x_.k;
    args.lda = static_cast<std::ptrdiff_t>(x_.k);
    args.packed = packed + (column ? kernel_.packed_bytes(column, x_.k) : 0);
    float *y = c.tensor(output()).as<float>() + first * n_ + column;
    args.y = y;
    args.ldy = static_cast<std::ptrdiff_t>(n_);
    args.lo = clamp_.lo;
    args.hi = clamp_.hi;
    args.scratch = c.lane_scratch(lane);
    args.rows = &rows;
    kernel_.run_rows(args);
    run_tails(c, {reinterpret_cast<std::uint8_t *>(y), static_cast<std::ptrdiff_t>(n_ * sizeof(float)), first, args.m,
                  column * sizeof(float), args.n * sizeof(float)});
  }

  const kernels::GemmKernel &kernel_;
  DynamicOperand x_;
  PackedPtr packed_;
  ops::Clamp clamp_;
  std::size_t n_;
  PackedColumns columns_;
  TaskGrid grid_;
};

}  // namespace

StepPtr make_dynamic_quantize(const char *who, const DynamicOperand &x, const ops::OwnGrid &grid, Isa isa) {
  return std::make_unique<DynamicQuantizeStep>(who, x, grid, isa);
}

StepPtr make_dynamic_product(const DynamicOperand &x, const DynamicProduct &product, const DynamicConstants &constants,
                             const std::optional<ops::Clamp> &clamp, Isa isa, const PackCache &cache) {
  const Tensor &w = constants.weight;
  if (w.dtype() != QTN_INT8 || !zero_points(w, constants.zero).empty())
    return std::make_unique<DynamicProductStep>(x, product, constants, clamp, isa, cache);
  const PackedPtr packed = cache(1, [&] { return packed_products(constants, isa); });
  return std::make_unique<PackedProductStep>(x, product, constants, clamp, packed);
}

}  // namespace qtn::runtime
