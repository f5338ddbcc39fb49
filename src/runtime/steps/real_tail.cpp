// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel.hpp"
#include "kernels/real/real.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

/// f(y, row, count) for the rows of a block, or where columns do not matter and nothing lies between rows, for all as one.
template <class F>
void each_row(const OutputBlock &block, bool any_columns, const F &f) {
  const bool joined = any_columns && block.ldy == static_cast<std::ptrdiff_t>(block.columns);
  const std::size_t rows = joined ? 1 : block.rows;
  const std::size_t count = (joined ? block.rows : 1) * block.columns / sizeof(float);
  std::uint8_t *y = block.y;
  for (std::size_t row = 0; row < rows; ++row, y += block.ldy) f(reinterpret_cast<float *>(y), row, count);
}

/// Rows of b are `pixel` elements apart; 0: there is one.
class RealAddTail final : public Tail {
 public:
  RealAddTail(SlotId b, std::ptrdiff_t pixel, const ops::Clamp &clamp) : pixel_(pixel), clamp_(clamp) { reads = {b}; }

  void run(const Context &c, OutputBlock &block) const override {
    const std::size_t columns = block.columns / sizeof(float);
    const auto *b = c.tensor(reads[0]).as<const float>() + static_cast<std::ptrdiff_t>(block.first_row) * pixel_ +
                    block.first_column / sizeof(float);
    const auto add = kernels::real_kernel().add;
    each_row(block, pixel_ == static_cast<std::ptrdiff_t>(columns), [&](float *y, std::size_t row, std::size_t count) {
      add(y, b + static_cast<std::ptrdiff_t>(row) * pixel_, count, clamp_.lo, clamp_.hi);
    });
  }

 private:
  std::ptrdiff_t pixel_;
  ops::Clamp clamp_;
};

class ActivationTail final : public Tail {
 public:
  ActivationTail(const RealActivation &activation, Isa isa)
      : activation_(activation), kernel_(kernels::choose(kernels::activation_kernels(), isa)) {}

  void run(const Context &, OutputBlock &block) const override {
    each_row(block, true, [&](float *y, std::size_t, std::size_t count) {
      if (const auto *f = std::get_if<kernels::Activation>(&activation_))
        kernel_.run(*f, y, y, count);
      else if (const auto *swish = std::get_if<kernels::Swish>(&activation_))
        kernel_.swish(*swish, y, y, count);
      else
        kernel_.exponential_unit(std::get<kernels::ExponentialUnit>(activation_), y, y, count);
    });
  }

 private:
  RealActivation activation_;
  const kernels::ActivationKernel &kernel_;
};

class LeakyTail final : public Tail {
 public:
  LeakyTail(const Tensor &slopes, Isa isa)
      : slopes_(slopes), kernel_(kernels::choose(kernels::activation_kernels(), isa)) {}

  void run(const Context &, OutputBlock &block) const override {
    const std::size_t step = slopes_.count() == 1 ? 0 : 1;
    const float *slopes = slopes_.as<const float>() + step * block.first_column / sizeof(float);
    each_row(block, step == 0,
             [&](float *y, std::size_t, std::size_t count) { kernel_.leaky(slopes, step, y, y, count); });
  }

 private:
  Tensor slopes_;
  const kernels::ActivationKernel &kernel_;
};

}  // namespace

TailPtr make_leaky_tail(const Tensor &slopes, Isa isa) { return std::make_unique<LeakyTail>(slopes, isa); }

TailPtr make_activation_tail(const RealActivation &activation, Isa isa) {
  return std::make_unique<ActivationTail>(activation, isa);
}

TailPtr make_real_add_tail(SlotId b, std::ptrdiff_t row, const ops::Clamp &clamp) {
  return std::make_unique<RealAddTail>(b, row, clamp);
}

TailPtr make_real_bias_tail(SlotId row, const ops::Clamp &clamp) {
  return std::make_unique<RealAddTail>(row, 0, clamp);
}

}  // namespace qtn::runtime
