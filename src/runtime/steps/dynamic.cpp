// SPDX-License-Identifier: Apache-2.0
// Floats that are brought to 8 bits in the run, on the grid that they give themselves.
#include <algorithm>
#include <cmath>

#include "kernels/grid/grid.hpp"
#include "kernels/kernel.hpp"
#include "ops/common/integer_linear.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class DynamicQuantizeStep : public Step {
 protected:
  DynamicQuantizeStep(const char *who, const DynamicOperand &x) : who_(who), x_(x) {
    op = kernel = "DynamicQuantizeLinear";
    integer = true;
    reads = {x.real.slot};
    writes = {x.q.slot, x.scales, x.zeros};
  }

  const char *who_;
  DynamicOperand x_;
};

class TensorStep final : public DynamicQuantizeStep {
 public:
  TensorStep(const char *who, const DynamicOperand &x, Numerics numerics, Isa isa)
      : DynamicQuantizeStep(who, x), numerics_(numerics), kernel_(kernels::choose(kernels::grid_kernels(), isa)) {}

  void run(const Context &c) const override {
    const Tensor &real = c.tensor(x_.real.slot), &q = c.tensor(x_.q.slot);
    const std::span<const float> x(real.as<const float>(), static_cast<std::size_t>(real.count()));
    const ScaleZero chosen = ops::dynamic_grid(who_, x, numerics_);
    const auto scale = static_cast<float>(chosen.scale);
    const auto zero = static_cast<std::int32_t>(chosen.zero_point);
    *c.tensor(x_.scales).as<float>() = scale;
    *c.tensor(x_.zeros).as<std::int32_t>() = zero;
    const bool divides = numerics_ == Numerics::onnx;
    const ops::ByteGrid grid{divides ? Rounding::division : Rounding::reciprocal, divides ? scale : 1.0f / scale, zero};
    if (x_.q.form.shape == x_.real.form.shape) return ops::quantize_8bit(x, grid, false, q.data());
    quantize_inside(c, x.data(), grid, q.as<std::uint8_t>());
  }

 private:
  /// Line by line of an image, whose borders get the zero point.
  void quantize_inside(const Context &c, const float *x, const ops::ByteGrid &grid, std::uint8_t *q) const {
    const Shape &shape = x_.real.form.shape, &to = x_.q.form.strides;
    const std::size_t last = shape.size() - 1;
    const std::int64_t height = last > 2 ? shape[last - 1] : 1, depth = last > 3 ? shape[2] : 1;
    const auto line = static_cast<std::size_t>(shape[1] * shape[last]);
    std::fill_n(q, element_count(x_.q.form.shape), static_cast<std::uint8_t>(grid.zero));
    for_chunks(c, static_cast<std::size_t>(shape[0] * depth * height),
               static_cast<std::size_t>(element_count(shape) / 8), [&](std::size_t, std::size_t i) {
                 const auto at = static_cast<std::int64_t>(i);
                 const std::int64_t row = last > 2 ? at % height * to[last - 1] : 0;
                 const std::int64_t plane = last > 3 ? at / height % depth * to[2] : 0;
                 kernel_.quantize({1, line, x + i * line, q + x_.inside + row + plane + at / height / depth * to[0],
                                   kernels::Cell::u8, grid.rounding, kernels::GridPer::array, &grid.factor, &grid.zero,
                                   0, 255, false});
               });
  }

  Numerics numerics_;
  const kernels::GridKernel &kernel_;
};

class RowsStep final : public DynamicQuantizeStep {
 public:
  RowsStep(const char *who, const DynamicOperand &x, Isa isa)
      : DynamicQuantizeStep(who, x),
        k_(static_cast<std::size_t>(x.real.form.shape.back())),
        rows_(static_cast<std::size_t>(element_count(x.real.form.shape)) / k_),
        kernel_(kernels::choose(kernels::grid_kernels(), isa)) {}

  void run(const Context &c) const override {
    const auto *x = c.tensor(x_.real.slot).as<const float>();
    auto *q = c.tensor(x_.q.slot).as<std::uint8_t>();
    auto *scales = c.tensor(x_.scales).as<float>();
    auto *zeros = c.tensor(x_.zeros).as<std::int32_t>();
    const std::size_t in_task = std::max<std::size_t>(1, kTaskElements / k_);
    for_chunks(c, ceil_div(rows_, in_task), in_task * k_ / 8, [&](std::size_t, std::size_t task) {
      const std::size_t first = task * in_task, last = std::min(first + in_task, rows_);
      for (std::size_t i = first; i < last; ++i) {
        const ScaleZero grid = ops::dynamic_row_grid(kernel_.range(x + i * k_, k_));
        scales[i] = static_cast<float>(grid.scale);
        zeros[i] = static_cast<std::int32_t>(grid.zero_point);
      }
      kernel_.quantize({last - first, k_, x + first * k_, q + first * k_, kernels::Cell::u8, Rounding::division,
                        kernels::GridPer::row, scales + first, zeros + first, 0, 255, false});
    });
    if (std::any_of(scales, scales + rows_, [](float s) { return std::isnan(s); })) ops::fail_without_scale(who_);
  }

 private:
  static constexpr std::size_t kTaskElements = 16384;

  std::size_t k_, rows_;
  const kernels::GridKernel &kernel_;
};

}  // namespace

StepPtr make_dynamic_quantize(const char *who, const DynamicOperand &x, Numerics numerics, Isa isa) {
  if (x.by_row) return std::make_unique<RowsStep>(who, x, isa);
  return std::make_unique<TensorStep>(who, x, numerics, isa);
}

}  // namespace qtn::runtime
