// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/linear.hpp"

namespace qtn::runtime {
namespace {

class GemmStep final : public LinearStep {
 public:
  GemmStep(const Product &product, const LinearWeights &w, const TaskGrid &grid, const PackCache &cache)
      : LinearStep(product, w, grid, cache), lda_(static_cast<std::ptrdiff_t>(w.k)) {
    macs = static_cast<std::int64_t>(grid.rows * w.out * w.k);
  }

 private:
  Rows rows(const std::uint8_t *x, const Task &task, std::byte *) const override {
    return {x + static_cast<std::ptrdiff_t>(task.first) * lda_, lda_, task.count};
  }

  std::ptrdiff_t lda_;
};

}  // namespace

StepPtr make_gemm(const Edge &x, const Edge &y, std::size_t rows, const LinearWeights &w, const QuantizedRange &range,
                  const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  const kernels::GemmKernel &kernel = gemm_kernel(w, isa);
  return std::make_unique<GemmStep>(LinearStep::Product{x, y, w.out, range, clamp, kernel}, w,
                                    task_grid(kernel, rows, kernel.mr, w.k, w.out, w.k), cache);
}

}  // namespace qtn::runtime
