// SPDX-License-Identifier: Apache-2.0
// BatchNormalization alone on channels that lie one after the other: a factor and an addend for each plane.
#include "kernels/pointwise/pointwise.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

constexpr std::size_t kWidth = 64;  // elements that keep vectors full

class NormalizePlanesStep final : public Step {
 public:
  NormalizePlanesStep(const Edge &x, const Edge &y, const RealNormalization &n, const ops::Clamp &clamp)
      : images_(static_cast<std::size_t>(x.form.shape[0])),
        channels_(static_cast<std::size_t>(x.form.shape[1])),
        plane_(static_cast<std::size_t>(element_count(x.form.shape, 2, x.form.shape.size()))),
        clamp_(clamp) {
    for (std::size_t c = 0; c < channels_; ++c) {
      const auto [factor, addend] = n.line(c);
      factors_.insert(factors_.end(), width(), factor);
      addends_.insert(addends_.end(), width(), addend);
    }
    kernel = kernels::pointwise_kernel().name;
    reads = {x.slot};
    writes = {y.slot};
  }

  void run(const Context &c) const override {
    const auto *x = c.tensor(reads[0]).as<const float>();
    auto *y = c.tensor(writes[0]).as<float>();
    if (plane_ < kWidth) return normalize(x, y, 0, images_, channels_ * plane_);
    for_chunks(c, images_ * channels_, images_ * channels_ * plane_ / 8, [&](std::size_t, std::size_t chunk) {
      const std::size_t first = chunk * plane_, channel = chunk % channels_, whole = plane_ / kWidth;
      normalize(x + first, y + first, channel, whole, kWidth);
      normalize(x + first + whole * kWidth, y + first + whole * kWidth, channel, 1, plane_ % kWidth);
    });
  }

 private:
  /// How often each channel's constants are there: small planes of an image are one row.
  std::size_t width() const { return std::min(plane_, kWidth); }

  void normalize(const float *x, float *y, std::size_t channel, std::size_t rows, std::size_t columns) const {
    const auto row = static_cast<std::ptrdiff_t>(columns);
    kernels::pointwise_kernel().affine({rows, columns, factors_.data() + channel * width(),
                                        addends_.data() + channel * width(), clamp_.lo, clamp_.hi, x, row, y, row});
  }

  std::size_t images_, channels_, plane_;
  std::vector<float> factors_, addends_;
  ops::Clamp clamp_;
};

}  // namespace

StepPtr make_normalize_planes(const Edge &x, const Edge &y, const RealNormalization &n, const ops::Clamp &clamp) {
  return std::make_unique<NormalizePlanesStep>(x, y, n, clamp);
}

}  // namespace qtn::runtime
