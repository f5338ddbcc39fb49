// SPDX-License-Identifier: Apache-2.0
// Products of floats that are brought to 8 bits on the way, on the grid that they give themselves.
#include <limits>
#include <numeric>

#include "kernels/dot/dot.hpp"
#include "kernels/kernel.hpp"
#include "kernels/pointwise/pointwise.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/integer_linear.hpp"
#include "runtime/steps/linear.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class DynamicQuantizeStep final : public Step {
 public:
  DynamicQuantizeStep(const char *who, const DynamicOperand &x, Numerics numerics)
      : who_(who), x_(x), numerics_(numerics) {
    op = kernel = "DynamicQuantizeLinear";
    integer = true;
    reads = {x.real};
    writes = {x.q, x.grid};
  }

  void run(const Context &c) const override {
    const Tensor &x = c.tensor(x_.real);
    const ScaleZero grid = ops::dynamic_grid(who_, x, numerics_);
    auto *kept = c.tensor(x_.grid).as<float>();
    kept[0] = static_cast<float>(grid.scale);
    kept[1] = static_cast<float>(grid.zero_point);
    const bool divides = numerics_ == Numerics::onnx;
    ops::quantize_8bit({x.as<const float>(), static_cast<std::size_t>(x.count())},
                       {divides ? Rounding::division : Rounding::reciprocal, divides ? kept[0] : 1.0f / kept[0],
                        static_cast<std::int32_t>(grid.zero_point)},
                       false, c.tensor(x_.q).data());
  }

 private:
  const char *who_;
  DynamicOperand x_;
  Numerics numerics_;
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
    reads = {x.q, x.grid};
    writes = {p.y, p.multipliers, p.sums};
    macs = static_cast<std::int64_t>(p.rows * n_ * k_);
  }

  void run(const Context &c) const override {
    const auto *q = c.tensor(x_.q).as<const std::uint8_t>();
    const auto *grid = c.tensor(x_.grid).as<const float>();
    auto *multipliers = c.tensor(p_.multipliers).as<float>();
    for (std::size_t i = 0; i < n_; ++i) multipliers[i] = grid[0] * scales_[scales_.size() == 1 ? 0 : i];
    auto *row_sums = c.tensor(p_.sums).as<std::int32_t>();
    if (!zeros_.empty())
      for (std::size_t i = 0; i < p_.rows; ++i) row_sums[i] = kernel_.sum(q + i * k_, k_, false);
    ops::multiply_columns(kernel_, {.m = p_.rows,
                                    .n = n_,
                                    .k = k_,
                                    .x = q,
                                    .ldx = static_cast<std::ptrdiff_t>(k_),
                                    .w = packed_->bytes.data(),
                                    .ldw = static_cast<std::ptrdiff_t>(k_),
                                    .signed_w = true,
                                    .zx = static_cast<std::int32_t>(grid[1]),
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

/// Weights around 0 as the integers that kernels pack, with a multiplier of 1: scales are known when x is.
LinearWeights plain_weights(const Tensor &w) {
  const PackedWeights rows = transposed(w);
  LinearWeights weights;
  weights.groups = 1;
  weights.out = static_cast<std::size_t>(w.dim(1));
  weights.k = static_cast<std::size_t>(w.dim(0));
  const auto *from = rows.bytes.as<const std::int8_t>();
  weights.weight.assign(from, from + weights.out * weights.k);
  weights.bias.resize(weights.out);
  weights.multiplier.resize(weights.out, 1.0f);
  return weights;
}

/// Weights for the kernel that is best for them; behind them, the sums of their columns. The offsets are that of the
/// sums and the number of the kernel; there are none where that kernel takes no list of sums.
PackedWeights packed_products(const Tensor &weight, Isa isa) {
  const LinearWeights w = plain_weights(weight);
  const kernels::GemmKernel &gemm = gemm_kernel(w, isa);
  PackedWeights packed;
  if (gemm.picture_bytes != 1) return packed;
  packed.offsets = {round_up(gemm.packed_bytes(w.out, w.k), kAlignment),
                    static_cast<std::size_t>(&gemm - kernels::gemm_kernels().data())};
  packed.bytes = AlignedBuffer(packed.offsets[0] + w.out * sizeof(std::int32_t));
  gemm.pack(packed.bytes.data(),
            {w.weight.data(), static_cast<std::ptrdiff_t>(w.k), w.bias.data(), w.multiplier.data(), w.out, w.k});
  auto *sums = reinterpret_cast<std::int32_t *>(packed.bytes.data() + packed.offsets[0]);
  for (std::size_t i = 0; i < w.out; ++i) sums[i] = std::reduce(&w.weight[i * w.k], &w.weight[i * w.k] + w.k, 0);
  return packed;
}

/// The same by the kernels of packed weights, which take what zero points add from a list that is made at each run.
class PackedProductStep final : public Step {
 public:
  PackedProductStep(const DynamicOperand &x, const DynamicProduct &p, const DynamicConstants &constants,
                    const std::optional<ops::Clamp> &clamp, const PackedPtr &packed)
      : kernel_(kernels::gemm_kernels()[packed->offsets[1]]),
        x_(x),
        p_(p),
        packed_(packed),
        scales_(float_values(constants.scales, "scales")),
        bias_(constants.bias.has_data() ? constants.bias.to_contiguous() : Tensor()),
        clamp_(clamp.value_or(ops::Clamp{-kInfinity, kInfinity})),
        k_(static_cast<std::size_t>(constants.weight.dim(0))),
        n_(static_cast<std::size_t>(constants.weight.dim(1))),
        grid_(task_grid(kernel_, p.rows, kernel_.mr, k_, n_, k_)) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.q, x.grid};
    writes = {p.y, p.multipliers, p.sums};
    macs = static_cast<std::int64_t>(p.rows * n_ * k_);
  }

  std::size_t lane_bytes() const override { return round_up(kernel_.scratch_bytes(k_), kAlignment); }

  void run(const Context &c) const override {
    const auto *grid = c.tensor(x_.grid).as<const float>();
    const auto zero = static_cast<std::uint32_t>(static_cast<std::int32_t>(grid[1]));
    const auto *columns = reinterpret_cast<const std::uint32_t *>(packed_->bytes.data() + packed_->offsets[0]);
    auto *multipliers = c.tensor(p_.multipliers).as<float>();
    auto *sums = c.tensor(p_.sums).as<std::int32_t>();
    for (std::size_t i = 0; i < n_; ++i) {
      multipliers[i] = grid[0] * scales_[scales_.size() == 1 ? 0 : i];
      sums[i] = static_cast<std::int32_t>(0 - zero * columns[i]);
    }
    const std::size_t ns = static_cast<std::size_t>(macs) / 400 + p_.rows * n_ / 16;
    for_chunks(c, grid_.row_blocks * grid_.column_blocks, ns,
               [&](std::size_t lane, std::size_t task) { multiply(c, lane, task, multipliers, sums); });
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  void multiply(const Context &c, std::size_t lane, std::size_t task, const float *multipliers,
                const std::int32_t *sums) const {
    const std::size_t column = task % grid_.column_blocks * grid_.column_block,
                      first = task / grid_.column_blocks * grid_.row_block,
                      rows = std::min(grid_.row_block, p_.rows - first),
                      columns = std::min(grid_.column_block, n_ - column);
    const kernels::GemmRun whole{0, 0, k_};
    const kernels::GemmStrip strip{0, static_cast<std::ptrdiff_t>(k_), rows, &whole, 1, 0, 0, 1};
    const kernels::GemmPicture picture{&strip, 1, sums + column};
    kernels::GemmArgs args{};
    args.m = rows;
    args.n = columns;
    args.k = k_;
    args.a = c.tensor(x_.q).as<const std::uint8_t>() + first * k_;
    args.lda = static_cast<std::ptrdiff_t>(k_);
    args.packed = packed_->bytes.data() + (column ? kernel_.packed_bytes(column, k_) : 0);
    float *y = c.tensor(p_.y).as<float>() + first * n_ + column;
    args.y = y;
    args.ldy = static_cast<std::ptrdiff_t>(n_);
    args.lo = -kInfinity;
    args.hi = kInfinity;
    args.scratch = c.lane_scratch(lane);
    args.picture = &picture;
    kernel_.run_f32(args);
    kernels::pointwise_kernel().affine({rows, columns, multipliers + column,
                                        bias_.has_data() ? bias_.as<const float>() + column : nullptr, clamp_.lo,
                                        clamp_.hi, y, args.ldy});
  }

  const kernels::GemmKernel &kernel_;
  DynamicOperand x_;
  DynamicProduct p_;
  PackedPtr packed_;
  std::vector<float> scales_;
  Tensor bias_;
  ops::Clamp clamp_;
  std::size_t k_, n_;
  TaskGrid grid_;
};

}  // namespace

StepPtr make_dynamic_quantize(const char *who, const DynamicOperand &x, Numerics numerics) {
  return std::make_unique<DynamicQuantizeStep>(who, x, numerics);
}

StepPtr make_dynamic_product(const DynamicOperand &x, const DynamicProduct &product, const DynamicConstants &constants,
                             const std::optional<ops::Clamp> &clamp, Isa isa, const PackCache &cache) {
  constexpr std::size_t kRunUnit = 4;  // of k, in the kernels that take sums from a list
  const Tensor &w = constants.weight;
  if (w.dtype() == QTN_INT8 && zero_points(w, constants.zero).empty() && w.count() > 0 &&
      static_cast<std::size_t>(w.dim(0)) % kRunUnit == 0) {
    const PackedPtr packed = cache(1, [&] { return packed_products(w, isa); });
    if (!packed->offsets.empty()) return std::make_unique<PackedProductStep>(x, product, constants, clamp, packed);
  }
  return std::make_unique<DynamicProductStep>(x, product, constants, clamp, isa, cache);
}

}  // namespace qtn::runtime
