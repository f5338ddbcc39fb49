// SPDX-License-Identifier: Apache-2.0
#include "runtime/steps/heads.hpp"

#include <algorithm>

namespace qtn::runtime {
namespace {

class HeadsStep final : public Step {
 public:
  HeadsStep(const Edge &x, const Edge &y, SlotId bias, std::size_t first)
      : x_(x.form), y_(y.form), shape_(x.form.shape), first_(first) {
    op = bias == kNoSlot ? "Copy" : "Add";
    kernel = "heads";
    reads = {x.slot};
    if (bias != kNoSlot) reads.push_back(bias);
    writes = {y.slot};
  }

  void run(const Context &c) const override {
    const auto *from = c.tensor(reads[0]).as<const float>();
    const float *bias = reads.size() > 1 ? c.tensor(reads[1]).as<const float>() + first_ : nullptr;
    auto *to = c.tensor(writes[0]).as<float>();
    const std::int64_t heads = shape_[1], places = shape_[2], features = shape_[3];
    const auto chunks = static_cast<std::size_t>(shape_[0] * heads);
    for_chunks(c, chunks, static_cast<std::size_t>(element_count(shape_)) / 8, [&](std::size_t, std::size_t chunk) {
      const std::int64_t batch = static_cast<std::int64_t>(chunk) / heads,
                         head = static_cast<std::int64_t>(chunk) % heads;
      for (std::int64_t p = 0; p < places; ++p) {
        const float *x = from + x_.at(batch, head) + p * x_.row;
        float *y = to + y_.at(batch, head) + p * y_.row;
        if (bias)
          for (std::int64_t i = 0; i < features; ++i) y[i] = x[i * x_.column] + bias[head * features + i];
        else if (x_.column == 1)
          std::copy_n(x, features, y);
        else
          for (std::int64_t i = 0; i < features; ++i) y[i] = x[i * x_.column];
      }
    });
  }

 private:
  Matrices x_, y_;
  Shape shape_;
  std::size_t first_;
};

}  // namespace

StepPtr make_heads(const Edge &x, const Edge &y, SlotId bias, std::size_t first) {
  return std::make_unique<HeadsStep>(x, y, bias, first);
}

}  // namespace qtn::runtime
