// SPDX-License-Identifier: Apache-2.0
// The second half of a transposed convolution that is one product: what each pixel gives each of its taps, added where
// taps of several pixels meet.
#include <algorithm>

#include "kernels/kernel.hpp"
#include "kernels/real/real.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

/// So many pixels of x have their products in the first level of cache.
constexpr std::int64_t kPixels = 64;

/// Adds `channels` floats of each pixel, pixels so many floats apart.
template <int kChannels>
void add_pixels(const float *from, std::ptrdiff_t from_step, float *to, std::ptrdiff_t to_step, std::int64_t channels,
                std::int64_t pixels) {
  if constexpr (kChannels > 0) channels = kChannels;
  for (; pixels > 0; --pixels, from += from_step, to += to_step)
    for (std::int64_t c = 0; c < channels; ++c) to[c] += from[c];
}

using AddPixels = decltype(&add_pixels<0>);
constexpr AddPixels kAddPixels[] = {add_pixels<0>, add_pixels<1>, add_pixels<2>, add_pixels<3>, add_pixels<4>};

class OverlapAddStep final : public Step {
 public:
  OverlapAddStep(const Edge &products, const Edge &y, const ops::Window &transposed, const Tensor &bias,
                 const ops::Clamp &clamp, Isa isa)
      : window_(transposed),
        bias_(bias),
        clamp_(clamp),
        clamp_kernel_(kernels::choose(kernels::real_kernels(), isa).clamp),
        channels_(y.form.shape[1]),
        line_(window_.in[1] * channels_),
        lines_(element_count(y.form.shape) / line_),
        pixel_(window_.kernel[0] * window_.kernel[1] * channels_),
        add_(kAddPixels[channels_ < std::ssize(kAddPixels) ? channels_ : 0]) {
    kernel = "overlap_add";
    reads = {products.slot};
    writes = {y.slot};
  }

  void run(const Context &c) const override {
    const auto *products = c.tensor(reads[0]).as<const float>();
    auto *y = c.tensor(writes[0]).as<float>();
    const auto added = static_cast<std::size_t>(lines_ / window_.in[0] * window_.out[0] * window_.out[1] * pixel_);
    for_chunks(c, static_cast<std::size_t>(lines_), added, [&](std::size_t, std::size_t chunk) {
      const auto line = static_cast<std::int64_t>(chunk), image = line / window_.in[0], row = line % window_.in[0];
      add_row(products + image * window_.out[0] * window_.out[1] * pixel_, row, y + line * line_);
    });
  }

 private:
  /// Row `row` of an image of y.
  void add_row(const float *products, std::int64_t row, float *y) const {
    begin_line(y);
    for (std::int64_t tap = 0; tap < window_.kernel[0]; ++tap) {
      const std::int64_t down = row + window_.pad_begin[0] - tap * window_.dilation[0], from = down / window_.stride[0];
      if (down < 0 || down % window_.stride[0] != 0 || from >= window_.out[0]) continue;
      add_line(products + from * window_.out[1] * pixel_ + tap * window_.kernel[1] * channels_, y);
    }
    if (!clamp_.changes_nothing()) clamp_kernel_(y, static_cast<std::size_t>(line_), clamp_.lo, clamp_.hi);
  }

  void begin_line(float *y) const {
    if (!bias_.has_data()) return void(std::fill_n(y, line_, 0.0f));
    std::copy_n(bias_.as<const float>(), channels_, y);
    for (std::int64_t done = channels_; done < line_; done *= 2) std::copy_n(y, std::min(done, line_ - done), y + done);
  }

  /// What the pixels of a line give their taps of one row. One tap of many pixels comes before the next, since sums that
  /// have just been written are slow to read.
  void add_line(const float *from, float *y) const {
    for (std::int64_t begin = 0; begin < window_.out[1]; begin += kPixels)
      for (std::int64_t tap = 0; tap < window_.kernel[1]; ++tap) {
        const ops::Span on_line = window_.outputs(1, tap);
        const std::int64_t first = std::max(begin, on_line.begin), end = std::min(begin + kPixels, on_line.end);
        const std::int64_t at = first * window_.stride[1] - window_.pad_begin[1] + tap * window_.dilation[1];
        if (first < end)
          add_(from + first * pixel_ + tap * channels_, pixel_, y + at * channels_, window_.stride[1] * channels_,
               channels_, end - first);
      }
  }

  ops::Window window_;  ///< from y to x
  Tensor bias_;
  ops::Clamp clamp_;
  void (*clamp_kernel_)(float *y, std::size_t count, float lo, float hi);
  std::int64_t channels_, line_, lines_, pixel_;  ///< in floats; lines are those of all images
  AddPixels add_;
};

}  // namespace

StepPtr make_overlap_add(const Edge &products, const Edge &y, const ops::Window &transposed, const Tensor &bias,
                         const ops::Clamp &clamp, Isa isa) {
  return std::make_unique<OverlapAddStep>(products, y, transposed, bias, clamp, isa);
}

}  // namespace qtn::runtime
