// SPDX-License-Identifier: Apache-2.0
// Each plane is copied into one with zeros around it, where the taps of neighbouring outputs are neighbours: rows, or
// at stride 1 all rows at once, are sums of shifted rows.
#include "ops/common/depthwise.hpp"

#include "base/counted.hpp"
#include "kernels/real/real.hpp"

namespace qtn::ops {
namespace {

class Planes {
 public:
  explicit Planes(const Window &w) : w_(w) {
    for (std::size_t axis = 0; axis < 3; ++axis) padded_[axis] = w.in[axis] + w.pad_begin[axis] + w.pad_end[axis];
    for (std::int64_t k0 = 0; k0 < w.kernel[0]; ++k0)
      for (std::int64_t k1 = 0; k1 < w.kernel[1]; ++k1)
        for (std::int64_t k2 = 0; k2 < w.kernel[2]; ++k2)
          offsets_.push_back(at(k0 * w.dilation[0], k1 * w.dilation[1]) + k2 * w.dilation[2]);
    // Between the rows of a block lie sums that are not needed.
    block_rows_ = w.stride[1] == 1 ? w.out[1] : 1;
    block_ = static_cast<std::size_t>((block_rows_ - 1) * padded_[2] + (w.out[2] - 1) * w.stride[2] + 1);
  }

  std::size_t padded_size() const { return static_cast<std::size_t>(padded_[0] * padded_[1] * padded_[2]); }
  std::size_t scratch_size() const { return padded_size() + block_; }

  void run(const float *x, const float *weight, float bias, float *y, float *scratch) const {
    float *sums = scratch + padded_size();
    pad(x, scratch);
    for (std::int64_t o0 = 0; o0 < w_.out[0]; ++o0)
      for (std::int64_t o1 = 0; o1 < w_.out[1]; o1 += block_rows_) {
        const float *from = scratch + at(o0 * w_.stride[0], o1 * w_.stride[1]);
        kernel_.taps({from, offsets_.data(), weight, offsets_.size(), bias, sums, block_});
        for (std::int64_t row = 0; row < block_rows_; ++row, y += w_.out[2]) pick(sums + row * padded_[2], y);
      }
  }

 private:
  std::ptrdiff_t at(std::int64_t i0, std::int64_t i1) const { return (i0 * padded_[1] + i1) * padded_[2]; }

  void pad(const float *x, float *to) const {
    std::fill(to, to + padded_size(), 0.0f);
    for (std::int64_t i0 = 0; i0 < w_.in[0]; ++i0)
      for (std::int64_t i1 = 0; i1 < w_.in[1]; ++i1, x += w_.in[2])
        std::copy(x, x + w_.in[2], to + at(i0 + w_.pad_begin[0], i1 + w_.pad_begin[1]) + w_.pad_begin[2]);
  }

  void pick(const float *sums, float *y) const {
    if (w_.stride[2] == 1)
      std::copy(sums, sums + w_.out[2], y);
    else
      for (std::int64_t o = 0; o < w_.out[2]; ++o) y[o] = sums[o * w_.stride[2]];
  }

  const Window &w_;
  const kernels::RealKernel &kernel_ = kernels::real_kernel();
  Window::Dims padded_;
  std::vector<std::ptrdiff_t> offsets_;
  std::int64_t block_rows_;
  std::size_t block_;
};

/// Whether a padded plane is not much larger than what is in it.
bool proportionate(const Window &w) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (w.pad_begin[axis] + w.pad_end[axis] > w.in[axis] + 16) return false;
  return true;
}

}  // namespace

bool run_depthwise(const Convolution &conv, const float *x, const float *weight, const float *bias, float *y) {
  if (conv.groups == 1 || conv.groups != conv.channels || !proportionate(conv.window)) return false;
  const std::int64_t multiplier = conv.filters / conv.groups, taps = conv.window.taps_count(), out = conv.out_size();
  if (out == 0) return true;
  const Planes planes(conv.window);
  const auto lanes = static_cast<std::size_t>(current_threads());
  CountedVector<float> scratch(lanes * planes.scratch_size());
  parallel_ranges(lanes, static_cast<std::size_t>(conv.images * conv.filters),
                  [&](std::size_t begin, std::size_t end, std::size_t lane) {
                    for (auto i = static_cast<std::int64_t>(begin); i < static_cast<std::int64_t>(end); ++i) {
                      const std::int64_t filter = i % conv.filters;
                      planes.run(x + i / multiplier * conv.in_size(), weight + filter * taps,
                                 bias ? bias[filter] : 0.0f, y + i * out,
                                 scratch.data() + lane * planes.scratch_size());
                    }
                  });
  return true;
}

}  // namespace qtn::ops
