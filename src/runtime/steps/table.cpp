// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel.hpp"
#include "kernels/lut/lut.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

constexpr std::size_t kChunk = 32 * 1024;

class TableStep final : public Step {
 public:
  TableStep(const Edge &x, const Edge &y, const std::array<std::uint8_t, 256> &table, Isa isa)
      : kernel_(kernels::choose(kernels::lut_kernels(), isa)),
        x_(x.slot),
        y_(y.slot),
        count_(static_cast<std::size_t>(element_count(x.form.shape))),
        table_(table) {
    kernel = kernel_.name;
    integer = true;
    reads = {x.slot};
    writes = {y.slot};
  }

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_).as<const std::uint8_t>();
    auto *y = c.tensor(y_).as<std::uint8_t>();
    for_chunks(c, ceil_div(count_, kChunk), count_ / 32, [&](std::size_t, std::size_t chunk) {
      const std::size_t first = chunk * kChunk;
      kernel_.run({y + first, x + first, 1, std::min(kChunk, count_ - first), 0, table_.data()});
    });
  }

 private:
  const kernels::LutKernel &kernel_;
  SlotId x_, y_;
  std::size_t count_;
  std::array<std::uint8_t, 256> table_;
};

class TableTail final : public Tail {
 public:
  TableTail(const std::array<std::uint8_t, 256> &table, Isa isa)
      : kernel_(kernels::choose(kernels::lut_kernels(), isa)), table_(table) {}

  void run(const Context &, OutputBlock &block) const override {
    const bool whole = static_cast<std::ptrdiff_t>(block.columns) == block.ldy;
    const std::size_t rows = whole ? 1 : block.rows, columns = whole ? block.rows * block.columns : block.columns;
    kernel_.run({block.y, block.y, rows, columns, block.ldy, table_.data()});
  }

 private:
  const kernels::LutKernel &kernel_;
  std::array<std::uint8_t, 256> table_;
};

}  // namespace

TailPtr make_table_tail(const std::array<std::uint8_t, 256> &table, Isa isa) {
  return std::make_unique<TableTail>(table, isa);
}

StepPtr make_table(const Edge &x, const Edge &y, const std::array<std::uint8_t, 256> &table, Isa isa) {
  return std::make_unique<TableStep>(x, y, table, isa);
}

}  // namespace qtn::runtime
