// SPDX-License-Identifier: Apache-2.0
// Rows of a table of integers, which become floats as they are read.
#include "base/error.hpp"
#include "kernels/grid/grid.hpp"
#include "kernels/kernel.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class EmbeddingStep final : public Step {
 public:
  EmbeddingStep(const Tensor &table, const Edge &indices, const Edge &y, Isa isa)
      : kernel_(kernels::choose(kernels::grid_kernels(), isa)),
        table_(table),
        cell_(table.dtype() == QTN_INT8 ? kernels::Cell::i8 : kernels::Cell::u8) {
    const Quantizer &q = *table.quantizer();
    for (const double scale : q.scales()) scales_.push_back(static_cast<float>(scale));
    for (const std::int64_t zero : q.zero_points()) zeros_.push_back(static_cast<std::int32_t>(zero));
    kernel = "embedding";
    integer = true;
    reads = {indices.slot};
    writes = {y.slot};
  }

  void run(const Context &c) const override {
    const Tensor &indices = c.tensor(reads[0]);
    const auto columns = static_cast<std::size_t>(table_.dim(1)), count = static_cast<std::size_t>(indices.count());
    auto *y = c.tensor(writes[0]).as<float>();
    for (std::size_t i = 0; i < count; ++i) require_row(index(indices, i));
    for_chunks(c, count, count * columns / 8, [&](std::size_t, std::size_t i) {
      const std::int64_t given = index(indices, i);
      const auto row = static_cast<std::size_t>(given < 0 ? given + table_.dim(0) : given);
      const std::size_t grid = scales_.size() == 1 ? 0 : row;
      kernel_.dequantize({1, columns, table_.as<const std::uint8_t>() + row * columns, y + i * columns, cell_, false,
                          kernels::GridPer::array, &scales_[grid], &zeros_[grid], false});
    });
  }

 private:
  static std::int64_t index(const Tensor &indices, std::size_t i) {
    return indices.dtype() == QTN_INT32 ? indices.as<const std::int32_t>()[i] : indices.as<const std::int64_t>()[i];
  }

  void require_row(std::int64_t index) const {
    if (index < -table_.dim(0) || index >= table_.dim(0))
      fail(QTN_EINVAL, "Gather: index ", index, " is outside dimension 0 of x ", to_string(table_.shape()));
  }

  const kernels::GridKernel &kernel_;
  Tensor table_;
  kernels::Cell cell_;
  std::vector<float> scales_;
  std::vector<std::int32_t> zeros_;
};

}  // namespace

StepPtr make_embedding(const Tensor &table, const Edge &indices, const Edge &y, Isa isa) {
  return std::make_unique<EmbeddingStep>(table, indices, y, isa);
}

}  // namespace qtn::runtime
