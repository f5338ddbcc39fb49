// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"
#include "base/random.hpp"
#include "train/steps/steps.hpp"

namespace qtn::train {
namespace {

class DropoutStep final : public Step {
 public:
  DropoutStep(const graph::Node &node, SlotId x, SlotId y, float ratio, std::uint64_t stream, const Switches &switches)
      : ratio_(ratio), stream_(stream), switches_(switches) {
    name = node.name;
    reads = grad_inputs = {x};
    writes = {y};
    overwrites = Overwrites::by_first;
  }

  void bind(std::span<const Slot> slots) override {
    x_ = slots[static_cast<std::size_t>(reads[0])].value;
    y_ = slots[static_cast<std::size_t>(writes[0])].value;
    dy_ = slots[static_cast<std::size_t>(writes[0])].gradient;
  }

  void forward(Scratch &) override { drop(x_, y_); }

  /// What was dropped is found out again rather than kept.
  void backward(std::span<const Tensor> dx, Scratch &) override {
    if (dx[0].has_data()) drop(dy_, dx[0]);
  }

 private:
  void drop(const Tensor &from, const Tensor &to) const {
    constexpr std::size_t kBlock = std::size_t{1} << 14;
    const auto count = static_cast<std::size_t>(from.count());
    const Random random(switches_.seed, switches_.batch << 20 | stream_);
    const float factor = ratio_ < 1 ? 1 / (1 - ratio_) : 0;
    const float *x = from.as<const float>();
    float *y = to.as<float>();
    parallel_for(ceil_div(count, kBlock), [&](std::size_t block) {
      const std::size_t end = std::min(count, (block + 1) * kBlock);
      for (std::size_t i = block * kBlock; i < end; i += 4) {
        const RandomWords words = random.block(i / 4);
        for (std::size_t e = i; e < std::min(end, i + 4); ++e)
          y[e] = static_cast<float>(words[e - i] >> 8) * 0x1p-24f < ratio_ ? 0.0f : x[e] * factor;
      }
    });
  }

  const float ratio_;
  const std::uint64_t stream_;
  const Switches &switches_;
  Tensor x_, y_, dy_;
};

}  // namespace

StepPtr make_dropout(const graph::Node &node, SlotId x, SlotId y, float ratio, std::uint64_t stream,
                     const Switches &switches) {
  return std::make_unique<DropoutStep>(node, x, y, ratio, stream, switches);
}

}  // namespace qtn::train
