// SPDX-License-Identifier: Apache-2.0
#include "runtime/padded.hpp"

#include <algorithm>

namespace qtn::runtime {

PaddedPicture::PaddedPicture(const ops::Window &window, const Picture &x, std::int64_t groups, std::uint8_t zero_point,
                             const kernels::GemmKernel &kernel)
    : window_(window),
      x_(x),
      groups_(groups),
      channels_(x.c / groups),
      element_(kernel.picture_bytes),
      zero_point_(zero_point) {
  const std::int64_t kh = window.kernel[0], kw = window.kernel[1];
  width_ = (window.out[1] - 1) * window.stride[1] + (kw - 1) * window.dilation[1] + 1;
  copies_ = element_ > 1 || window.pad_begin[1] > 0 || width_ > x.w + window.pad_begin[1];
  pixel_ = copies_ ? x.c * element_ : x.pixel;
  pitch_ = (copies_ ? width_ : x.w) * pixel_;
  joined_ = window.dilation[1] == 1 && pixel_ == group_bytes();
  runs_of_row_ = joined_ ? 1 : kw;
  run_used_ = joined_ ? kw * channels_ : channels_;
  run_length_ = (run_used_ + 3) / 4 * 4;
  for (std::int64_t ky = 0; ky < kh; ++ky)
    for (std::int64_t i = 0; i < runs_of_row_; ++i)
      runs_.push_back(ky * window.dilation[0] * pitch_ + i * window.dilation[1] * pixel_);
  for (std::int64_t oy = 0; oy < window.out[0]; ++oy) {
    ops::Span taps = window.taps(0, oy);
    if (taps.end < taps.begin) taps = {0, 0};
    const auto same = [&](const ops::Span &s) { return s.begin == taps.begin && s.end == taps.end; };
    const auto found = std::find_if(classes_.begin(), classes_.end(), same);
    class_of_.push_back(static_cast<std::size_t>(found - classes_.begin()));
    if (found == classes_.end()) classes_.push_back(taps);
  }
}

LinearWeights PaddedPicture::weights(const LinearWeights &w) const {
  if (run_used_ == run_length_) return w;
  LinearWeights spread = w;
  spread.k = runs_.size() * run_length();
  spread.weight.assign(w.groups * w.out * spread.k, 0);
  const auto used = static_cast<std::size_t>(run_used_);
  for (std::size_t o = 0; o < w.groups * w.out; ++o)
    for (std::size_t r = 0; r < runs_.size(); ++r)
      std::copy_n(&w.weight[o * w.k + r * used], used, &spread.weight[o * spread.k + r * run_length()]);
  return spread;
}

std::vector<std::int32_t> PaddedPicture::bias(const LinearWeights &spread, std::size_t panels) const {
  std::vector<std::int32_t> bias(classes_.size() * spread.groups * panels);
  const std::size_t row = static_cast<std::size_t>(runs_of_row_ * run_length_);
  for (std::size_t i = 0; i < classes_.size(); ++i)
    for (std::size_t o = 0; o < spread.groups * spread.out; ++o) {
      // The bias takes the zero point off every tap: give it back for those that are left out.
      std::int32_t left_out = 0;
      for (std::size_t ky = 0; ky < static_cast<std::size_t>(window_.kernel[0]); ++ky) {
        const auto at = static_cast<std::int64_t>(ky);
        if (at >= classes_[i].begin && at < classes_[i].end) continue;
        for (std::size_t k = 0; k < row; ++k) left_out += spread.weight[o * spread.k + ky * row + k];
      }
      const auto given_back = static_cast<std::uint32_t>(left_out) * zero_point_;
      bias[(i * spread.groups + o / spread.out) * panels + o % spread.out] =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(spread.bias[o]) + given_back);
    }
  return bias;
}

std::int64_t PaddedPicture::copied_rows(std::int64_t rows) const {
  return (rows - 1) * window_.stride[0] + (window_.kernel[0] - 1) * window_.dilation[0] + 1;
}

std::size_t PaddedPicture::bytes_of_pixel() const {
  return static_cast<std::size_t>(pitch_ * window_.stride[0] / window_.out[1]);
}

std::size_t PaddedPicture::bytes(std::size_t rows) const {
  if (!copies_) return 0;
  // Every image of a block may begin anew.
  const auto count = static_cast<std::int64_t>(rows);
  const std::int64_t images = std::min(x_.n, (count - 1 + window_.out[0] - 1) / window_.out[0] + 1);
  return static_cast<std::size_t>(copied_bytes(count) + (images - 1) * copied_bytes(1)) + kReadSlack;
}

template <class T>
void PaddedPicture::fill_as(T *to, const std::uint8_t *image, std::int64_t first, std::int64_t rows) const {
  const std::int64_t left = std::min(window_.pad_begin[1], width_), used = std::min(x_.w, width_ - left);
  const std::int64_t right = width_ - left - used;
  const std::int64_t y0 = first * window_.stride[0] - window_.pad_begin[0];
  const T zero = zero_point_;
  for (std::int64_t i = 0; i < copied_rows(rows); ++i) {
    T *at = to + i * width_ * x_.c;
    const std::int64_t y = y0 + i;
    if (y < 0 || y >= x_.h) continue;
    const std::uint8_t *from = image + y * x_.w * x_.pixel;
    at = std::fill_n(at, left * x_.c, zero);
    if (x_.pixel == x_.c)
      at = std::copy_n(from, used * x_.c, at);
    else
      for (std::int64_t p = 0; p < used; ++p) at = std::copy_n(from + p * x_.pixel, x_.c, at);
    std::fill_n(at, right * x_.c, zero);
  }
}

void PaddedPicture::fill(std::byte *to, const std::uint8_t *image, std::int64_t first, std::int64_t rows) const {
  if (element_ == 1)
    fill_as(reinterpret_cast<std::uint8_t *>(to), image, first, rows);
  else
    fill_as(reinterpret_cast<std::uint16_t *>(to), image, first, rows);
}

kernels::GemmStrip PaddedPicture::strip(std::int64_t oy, std::ptrdiff_t at, std::size_t class_step) const {
  const std::size_t i = class_of_[static_cast<std::size_t>(oy)], runs = static_cast<std::size_t>(runs_of_row_);
  const ops::Span &taps = classes_[i];
  const auto [begin, end] = std::pair{static_cast<std::size_t>(taps.begin), static_cast<std::size_t>(taps.end)};
  return {at, begin * runs, (end - begin) * runs, i * class_step};
}

}  // namespace qtn::runtime
