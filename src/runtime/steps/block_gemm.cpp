// SPDX-License-Identifier: Apache-2.0
// Products of activations that become int8 by blocks at every run, by weights that stay in 4 or 8 bits.
#include <algorithm>

#include "base/size.hpp"
#include "kernels/kernel.hpp"
#include "ops/common/matmulnbits.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

using kernels::BlocksForm;
using kernels::GemmBlocksKernel;

const GemmBlocksKernel &kernel_for(Isa isa) { return kernels::choose(kernels::gemm_blocks_kernels(), isa); }

/// Rows from `first` on.
kernels::BlocksRows rows_of(const Context &c, const BlocksOperand &x, const BlocksForm &form, std::size_t first) {
  return {c.tensor(x.q).as<std::int8_t>() + first * form.row_bytes(),
          c.tensor(x.scales).as<float>() + first * form.blocks(),
          c.tensor(x.sums).as<std::int32_t>() + first * form.blocks()};
}

class BlockQuantizeStep final : public Step {
 public:
  BlockQuantizeStep(const BlocksOperand &x, const BlocksForm &form, Isa isa)
      : kernel_(kernel_for(isa)), x_(x), form_(form) {
    op = "DynamicQuantizeLinear";
    kernel = kernel_.name;
    integer = true;
    reads = {x.real};
    writes = {x.q, x.scales, x.sums};
  }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_.real).as<const float>();
    for_ranges(c, x_.rows, x_.rows * form_.k / 8, [&](std::size_t, std::size_t begin, std::size_t end) {
      kernel_.quantize(rows_of(c, x_, form_, begin), x + begin * form_.k, end - begin, form_);
    });
  }

 private:
  const GemmBlocksKernel &kernel_;
  BlocksOperand x_;
  BlocksForm form_;
};

class BlockProductStep final : public TailedStep {
 public:
  BlockProductStep(const BlocksOperand &x, const Edge &y, const ops::Call &constants, const ops::Clamp &clamp, Isa isa,
                   const PackCache &cache)
      : kernel_(kernel_for(isa)),
        x_(x),
        form_(ops::nbits_form(constants)),
        out_(static_cast<std::size_t>(y.form.shape.back())),
        clamp_(clamp),
        packed_(cache(0, [&] {
          return PackedWeights{ops::packed_nbits(constants, kernel_), {0}};
        })) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.q, x.scales, x.sums};
    writes = {y.slot};
    macs = static_cast<std::int64_t>(x.rows * out_ * form_.k);
  }

  bool makes_matrices() const override { return true; }

  void run(const Context &c) const override {
    auto *y = c.tensor(output()).as<float>();
    const std::size_t unit = 4 * kernel_.nr;
    const std::size_t ns = packed_->bytes.size() / 20 + static_cast<std::size_t>(macs) / 100;
    for_ranges(c, ceil_div(out_, unit), ns, [&](std::size_t, std::size_t begin, std::size_t end) {
      const std::size_t j = begin * unit, columns = std::min(end * unit, out_) - j;
      kernel_.run({form_, x_.rows, columns, rows_of(c, x_, form_, 0),
                   packed_->bytes.data() + (j ? kernel_.packed_bytes(j, form_) : 0), y + j,
                   static_cast<std::ptrdiff_t>(out_), clamp_.lo, clamp_.hi});
      run_tails(c, {reinterpret_cast<std::uint8_t *>(y + j), static_cast<std::ptrdiff_t>(out_ * sizeof(float)), 0,
                    x_.rows, j * sizeof(float), columns * sizeof(float)});
    });
  }

 private:
  const GemmBlocksKernel &kernel_;
  BlocksOperand x_;
  BlocksForm form_;
  std::size_t out_;
  ops::Clamp clamp_;
  PackedPtr packed_;
};

}  // namespace

StepPtr make_block_quantize(const BlocksOperand &x, const BlocksForm &form, Isa isa) {
  return std::make_unique<BlockQuantizeStep>(x, form, isa);
}

StepPtr make_block_product(const BlocksOperand &x, const Edge &y, const ops::Call &constants, const ops::Clamp &clamp,
                           Isa isa, const PackCache &cache) {
  return std::make_unique<BlockProductStep>(x, y, constants, clamp, isa, cache);
}

}  // namespace qtn::runtime
