// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>

#include "base/parallel.hpp"
#include "kernels/fake/fake.hpp"
#include "quant/observe/kinds.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

constexpr float kOne = 1, kZero = 0;

class FakeQuantizeStep final : public Step {
 public:
  FakeQuantizeStep(SlotId x, SlotId y, const Epilogue &epilogue, const Switches &switches)
      : epilogue_(epilogue), grid_(*epilogue.grid), switches_(switches) {
    name = grid_.name();
    reads = keeps = grad_inputs = {x};
    writes = {y};
    overwrites = Overwrites::by_first;
  }

  void bind(std::span<const Slot> slots) override {
    x_ = slots[static_cast<std::size_t>(reads[0])].value;
    y_ = slots[static_cast<std::size_t>(writes[0])].value;
    dy_ = slots[static_cast<std::size_t>(writes[0])].gradient;
    count_ = static_cast<std::size_t>(x_.count());
  }

  void forward(Scratch &) override {
    if (switches_.observers && !grid_.fixed() && count_ > 0) {
      // Clamping keeps the order of elements.
      const kernels::Extent extent = quant::extent_of(x_.as<const float>(), count_);
      if (extent.finite)
        grid_.observe(std::clamp(extent.min, epilogue_.lo, epilogue_.hi),
                      std::clamp(extent.max, epilogue_.lo, epilogue_.hi));
    }
    rounds_ = switches_.fake_quant && grid_.known();
    if (rounds_) view_ = kernel_grid(grid_.view());
    std::atomic<bool> finite = true;
    each_piece([&](const kernels::PlanesArgs &piece, std::size_t at) {
      if (!kernels::fake_kernel().normalize(piece, y_.as<float>() + at)) finite = false;
    });
    hides_not_finite = rounds_ && !finite;
  }

  void backward(std::span<const Tensor> dx, Scratch &) override {
    if (!dx[0].has_data()) return;
    each_piece([&](const kernels::PlanesArgs &piece, std::size_t at) {
      kernels::fake_kernel().normalize_backward(
          {piece, dy_.as<const float>() + at, &kOne, &kZero, &kZero, dx[0].as<float>() + at});
    });
  }

 private:
  /// A normalization that changes nothing, except for its epilogue.
  template <class F>
  void each_piece(F &&f) const {
    constexpr std::size_t kPiece = std::size_t{1} << 14;
    parallel_for(ceil_div(count_, kPiece), [&](std::size_t i) {
      const std::size_t at = i * kPiece;
      f({1, std::min(kPiece, count_ - at), x_.as<const float>() + at, &kOne, &kZero, epilogue_.lo, epilogue_.hi,
         rounds_ ? &view_ : nullptr},
        at);
    });
  }

  const Epilogue epilogue_;
  ActivationGrid &grid_;
  const Switches &switches_;
  Tensor x_, y_, dy_;
  std::size_t count_ = 0;
  kernels::FakeGrids view_{};
  bool rounds_ = false;  // in the last forward run
};

}  // namespace

kernels::FakeGrids kernel_grid(const Grids &g) {
  return {g.scales.data(), g.zero_points.data(), g.lo, g.hi, g.rounding, g.inverses};
}

StepPtr make_fake_quantize(SlotId x, SlotId y, const Epilogue &epilogue, const Switches &switches) {
  return std::make_unique<FakeQuantizeStep>(x, y, epilogue, switches);
}

}  // namespace qtn::train
