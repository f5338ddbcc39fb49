// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel.hpp"
#include "runtime/steps/linear.hpp"

namespace qtn::runtime {
namespace {

class GemmStep final : public LinearStep {
 public:
  GemmStep(const Product &product, const TaskGrid &grid)
      : LinearStep(product, grid), lda_(static_cast<std::ptrdiff_t>(product.k)) {
    macs = static_cast<std::int64_t>(grid.rows * product.out * product.k / dtype_size(product.x.form.dtype));
  }

  bool makes_matrices() const override { return true; }

 private:
  Rows rows(const std::uint8_t *x, const Task &task, std::byte *) const override {
    return {x + static_cast<std::ptrdiff_t>(task.first) * lda_, lda_, task.count};
  }

  std::ptrdiff_t lda_;
};

StepPtr make_gemm(const Product &p, std::size_t rows) {
  return std::make_unique<GemmStep>(p, matrix_grid(p, rows, static_cast<std::ptrdiff_t>(p.k)));
}

}  // namespace

StepPtr make_gemm(const Edge &x, const Edge &y, std::size_t rows, const LinearWeights &w, const QuantizedRange &range,
                  const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  return make_gemm(integer_product(x, y, w.out, w, range, clamp, gemm_kernel(w, isa), cache), rows);
}

StepPtr make_dynamic_gemm(const DynamicOperand &x, const Edge &y, std::size_t rows, const DynamicWeights &w,
                          const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  return make_gemm(dynamic_product(x, y, w.integers.out, w, clamp, gemm_kernel(w.integers, isa), isa, cache), rows);
}

StepPtr make_real_gemm(const Edge &x, const Edge &y, std::size_t rows, const RealWeights &w, const ops::Clamp &clamp,
                       Isa isa, const PackCache &cache) {
  return make_gemm(real_product(x, y, w.out, w, clamp, kernels::choose(kernels::gemm_real_kernels(), isa), cache),
                   rows);
}

}  // namespace qtn::runtime
