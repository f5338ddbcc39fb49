// SPDX-License-Identifier: Apache-2.0
// BatchNormalization alone on an image: a factor and an addend for each channel.

#include "kernels/pointwise/pointwise.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

constexpr std::size_t kChunk = 8 * 1024;  // elements of one task, which stay in the first level of cache
constexpr std::size_t kTogether = 64;     // elements that keep vectors full

class RealNormalizeStep final : public TailedStep {
 public:
  RealNormalizeStep(const Edge &x, const Edge &y, const RealNormalization &n, const ops::Clamp &clamp)
      : image_(*as_image(x.form.shape, x.form.strides)), clamp_(clamp) {
    if (image_.pixel == image_.c) together_ = std::max<std::size_t>(1, kTogether / static_cast<std::size_t>(image_.c));
    for (std::size_t row = 0; row < together_; ++row)
      for (std::int64_t c = 0; c < image_.c; ++c) {
        const auto [factor, addend] = n.line(static_cast<std::size_t>(c));
        factors_.push_back(factor);
        addends_.push_back(addend);
      }
    kernel = kernels::pointwise_kernel().name;
    reads = {x.slot};
    writes = {y.slot};
  }

  void run(const Context &c) const override {
    const auto *x = c.tensor(reads[0]).as<const float>();
    auto *y = c.tensor(output()).as<float>();
    const auto channels = static_cast<std::size_t>(image_.c),
               rows = static_cast<std::size_t>(image_.n * image_.pixels());
    const std::size_t block = std::max<std::size_t>(1, kChunk / channels);
    for_chunks(c, ceil_div(rows, block), rows * channels / 8, [&](std::size_t, std::size_t chunk) {
      const std::size_t first = chunk * block, count = std::min(block, rows - first);
      const std::size_t many = count / together_ * together_;
      normalize(x, y, first, many / together_, together_);
      normalize(x, y, first + many, count - many, 1);
      const std::size_t row = channels * sizeof(float);
      run_tails(c, {reinterpret_cast<std::uint8_t *>(y + first * channels), static_cast<std::ptrdiff_t>(row), first,
                    count, 0, row});
    });
  }

 private:
  /// So many times `together` pixels from `first` on.
  void normalize(const float *x, float *y, std::size_t first, std::size_t times, std::size_t together) const {
    const std::size_t columns = static_cast<std::size_t>(image_.c) * together;
    kernels::pointwise_kernel().affine(
        {times, columns, factors_.data(), addends_.data(), clamp_.lo, clamp_.hi,
         x + static_cast<std::ptrdiff_t>(first) * image_.pixel, image_.pixel * static_cast<std::ptrdiff_t>(together),
         y + static_cast<std::ptrdiff_t>(first) * image_.c, static_cast<std::ptrdiff_t>(columns)});
  }

  Image image_;
  std::size_t together_ = 1;  ///< pixels, where they have few channels
  std::vector<float> factors_, addends_;
  ops::Clamp clamp_;
};

}  // namespace

ops::ChannelLine RealNormalization::line(std::size_t channel) const {
  const auto at = [channel](const Tensor &t) { return t.as<const float>()[channel]; };
  return ops::channel_line(at(scale), at(shift), at(mean), at(variance), epsilon);
}

StepPtr make_real_normalize(const Edge &x, const Edge &y, const RealNormalization &n, const ops::Clamp &clamp) {
  return std::make_unique<RealNormalizeStep>(x, y, n, clamp);
}

}  // namespace qtn::runtime
