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
    for_chunks(c, ceil_div(count_, kChunk), [&](std::size_t, std::size_t chunk) {
      const std::size_t first = chunk * kChunk;
      kernel_.run(y + first, x + first, std::min(kChunk, count_ - first), table_.data());
    });
  }

 private:
  const kernels::LutKernel &kernel_;
  SlotId x_, y_;
  std::size_t count_;
  std::array<std::uint8_t, 256> table_;
};

}  // namespace

StepPtr make_table(const Edge &x, const Edge &y, const std::array<std::uint8_t, 256> &table, Isa isa) {
  return std::make_unique<TableStep>(x, y, table, isa);
}

}  // namespace qtn::runtime
