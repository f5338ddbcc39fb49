// SPDX-License-Identifier: Apache-2.0
#include "runtime/padded.hpp"

#include <algorithm>
#include <cstring>

#include "base/size.hpp"
#include "runtime/layout.hpp"
#include "runtime/widen.hpp"

namespace qtn::runtime {
namespace {

ops::Span inside(const ops::Window &window, std::size_t axis, std::int64_t output) {
  const ops::Span taps = window.taps(axis, output);
  return taps.end < taps.begin ? ops::Span{0, 0} : taps;
}

bool same(const ops::Span &a, const ops::Span &b) { return a.begin == b.begin && a.end == b.end; }

/// Rows of the image from the first to the last that so many output rows of a plane read.
std::int64_t rows_read(const ops::Window &window, std::int64_t rows) {
  return (rows - 1) * window.stride[0] + (window.kernel[0] - 1) * window.dilation[0] + 1;
}

}  // namespace

std::size_t PaddedImage::taps_of_sets(const ops::Window &window) {
  Size all = 1;
  for (const std::size_t axis : {0, 1, 2}) {
    std::int64_t along_axis = 0;
    ops::Span last{-1, -1};
    for (std::int64_t o = 0; o < window.out[axis]; ++o) {
      const ops::Span taps = inside(window, axis, o);
      if (!same(taps, last)) along_axis += taps.end - taps.begin;
      last = taps;
    }
    all = all * along_axis;
  }
  return all.value();
}

PaddedImage::PaddedImage(const ops::Window &window, const Image &x, std::int64_t groups, std::uint8_t zero_point,
                         const kernels::GemmForm &form, std::size_t rows)
    : window_(window),
      x_(x),
      channels_(x.c / groups),
      element_(form.image_bytes),
      row_unit_(form.row_unit),
      run_unit_(static_cast<std::int64_t>(form.run_unit)),
      zero_point_(zero_point),
      columns_(columns_of(window, channels_, form, rows)) {
  const std::int64_t kw = window.kernel[1];
  width_ = (window.out[1] - 1) * window.stride[1] + (kw - 1) * window.dilation[1] + 1;
  const bool reaches_out = window.pad_begin[1] > 0 || width_ > x.w + window.pad_begin[1];
  copies_ = element_ > 1 || (reaches_out && columns_.size() == 1);
  pixel_ = copies_ ? x.c * element_ : x.pixel;
  pitch_ = (Size(copies_ ? width_ : x.w) * pixel_).as_signed();
  joined_ = window.dilation[1] == 1 && pixel_ == group_bytes();
  run_used_ = joined_ ? kw * channels_ : channels_;
  run_length_ = filled_up(run_used_);
  for (std::int64_t line = 0; line < lines(); ++line) {
    const Lines taps{inside(window, 2, line / window.out[0]), inside(window, 0, line % window.out[0])};
    const auto found = std::find(lines_.begin(), lines_.end(), taps);
    lines_of_.push_back(static_cast<std::size_t>(found - lines_.begin()));
    if (found == lines_.end()) lines_.push_back(taps);
  }
  for (const Lines &lines : lines_)
    for (const Columns &columns : columns_) runs_.push_back(runs(lines, columns.taps));
}

bool PaddedImage::Lines::operator==(const Lines &other) const {
  return same(planes, other.planes) && same(rows, other.rows);
}

bool PaddedImage::Lines::has(std::int64_t plane, std::int64_t row) const {
  return plane >= planes.begin && plane < planes.end && row >= rows.begin && row < rows.end;
}

std::vector<PaddedImage::Columns> PaddedImage::columns_of(const ops::Window &window, std::int64_t channels,
                                                          const kernels::GemmForm &form, std::size_t rows) {
  std::vector<Columns> columns;
  std::int64_t most = 0;
  for (std::int64_t ox = 0; ox < window.out[1]; ++ox) {
    const ops::Span taps = inside(window, 1, ox);
    if (columns.empty() || !same(columns.back().taps, taps)) columns.push_back({ox, 0, taps});
    most = std::max(most, ++columns.back().count);
  }
  // Measured: strips of fewer rows than two fifths of a tile cost more than products with zero points, unless most rows of
  // a copy are read by the next block, too, or it would be that of a volume, which is gathered.
  const std::size_t shortest = std::min(rows, static_cast<std::size_t>(most));
  const auto count = static_cast<std::int64_t>(rows);
  const bool copies_little = is_flat(window) && rows_read(window, count) <= 2 * count * window.stride[0];
  if (channels % static_cast<std::int64_t>(form.run_unit) != 0 || (copies_little && 5 * shortest < 2 * form.mr))
    return {{0, window.out[1], {0, window.kernel[1]}}};
  return columns;
}

bool PaddedImage::is_worth_filling(std::size_t outputs) const {
  if (row_unit_ == 1) return true;
  // Measured on an Emerald Rapids, in units of a row by as many columns by one step of k, 1.5 cycles: copying a run takes
  // 22 cycles, and one for each 16 bytes.
  constexpr std::size_t kColumns = 16, kRun = 15, kBytes = 24;
  const auto width = static_cast<std::size_t>(window_.out[1]), used = static_cast<std::size_t>(run_used_);
  const auto runs = static_cast<std::size_t>(window_.kernel[2] * window_.kernel[0] * (joined_ ? 1 : window_.kernel[1]));
  const std::size_t columns = ceil_div(outputs, kColumns), unit = static_cast<std::size_t>(run_unit_);
  const std::size_t in_place = runs * ceil_div(used, unit) * columns * round_up(width, row_unit_) / width;
  const std::size_t gathered = ceil_div(runs * used, unit) * columns + runs * kRun + runs * used / kBytes;
  return in_place <= gathered;
}

std::int64_t PaddedImage::weights_of_tap(std::int64_t line, std::int64_t kx) const {
  return joined_ ? line * run_length_ + kx * channels_ : (line * window_.kernel[1] + kx) * run_length_;
}

std::vector<kernels::GemmRun> PaddedImage::runs(const Lines &lines, const ops::Span &taps) const {
  std::vector<kernels::GemmRun> runs;
  const std::int64_t taps_of_run = joined_ ? std::max<std::int64_t>(1, taps.end - taps.begin) : 1;
  for (std::int64_t kz = lines.planes.begin; kz < lines.planes.end; ++kz)
    for (std::int64_t ky = lines.rows.begin; ky < lines.rows.end; ++ky)
      for (std::int64_t kx = taps.begin; kx < taps.end; kx += taps_of_run)
        runs.push_back({(kz * window_.dilation[2] * window_.in[0] + ky * window_.dilation[0]) * pitch_ +
                            kx * window_.dilation[1] * pixel_,
                        static_cast<std::size_t>(weights_of_tap(kz * window_.kernel[0] + ky, kx)),
                        static_cast<std::size_t>(filled_up(taps_of_run * channels_))});
  return runs;
}

LinearWeights PaddedImage::weights(const LinearWeights &w) const {
  if (run_used_ == run_length_) return w;
  LinearWeights spread = w;
  const std::size_t used = static_cast<std::size_t>(run_used_), length = static_cast<std::size_t>(run_length_);
  const std::size_t runs = w.k / used;
  spread.k = runs * length;
  spread.weight = Lazy<Tensor>::by([w, runs, used, length] {
    const std::size_t count = w.groups * w.out;
    const Tensor all(QTN_INT8, Shape{static_cast<std::int64_t>(count * runs * length)});
    std::memset(all.data(), 0, all.nbytes());
    for (std::size_t o = 0; o < count; ++o)
      for (std::size_t r = 0; r < runs; ++r)
        std::copy_n(w.filter(o) + r * used, used, all.as<std::int8_t>() + (o * runs + r) * length);
    return all;
  });
  return spread;
}

std::vector<std::int32_t> PaddedImage::bias(const LinearWeights &w, std::size_t panels) const {
  const std::size_t outputs = w.groups * w.out, class_step = w.groups * panels;
  std::vector<std::int32_t> bias(runs_.size() * class_step);
  const std::int64_t kh = window_.kernel[0], kw = window_.kernel[1], lines = window_.kernel[2] * kh;
  for (std::size_t o = 0; o < outputs; ++o) {
    const auto *sums = w.tap_sums.as<const std::int32_t>() + o * w.taps;
    std::int32_t *to = &bias[o / w.out * panels + o % w.out];
    for (const Lines &there : lines_)
      for (const Columns &columns : columns_) {
        // The bias takes the zero point off every tap: give it back for those that are left out.
        std::uint32_t left_out = 0;
        for (std::int64_t line = 0; line < lines; ++line)
          for (std::int64_t kx = 0; kx < kw; ++kx)
            if (!there.has(line / kh, line % kh) || kx < columns.taps.begin || kx >= columns.taps.end)
              left_out += static_cast<std::uint32_t>(sums[line * kw + kx]);
        *to = static_cast<std::int32_t>(static_cast<std::uint32_t>(w.bias[o]) + left_out * zero_point_);
        to += class_step;
      }
  }
  return bias;
}

std::ptrdiff_t PaddedImage::copied_bytes(std::int64_t rows) const { return rows_read(window_, rows) * pitch_; }

std::size_t PaddedImage::bytes_of_pixel(const ops::Window &window, const Image &x, const kernels::GemmForm &form) {
  return (Size(x.w) * x.c * form.image_bytes * window.stride[0]).value() / static_cast<std::size_t>(window.out[1]);
}

std::size_t PaddedImage::bytes(std::size_t rows) const {
  if (!copies_) return 0;
  // Every image of a block may begin again.
  const auto count = static_cast<std::int64_t>(rows);
  const std::int64_t images = std::min(x_.n, (count - 1 + window_.out[0] - 1) / window_.out[0] + 1);
  const Size first = Size(rows_read(window_, 1)) * pitch_, later = Size(count - 1) * window_.stride[0] * pitch_;
  return (first * images + later + kReadSlack).value();
}

template <class T>
void PaddedImage::fill_as(T *to, const std::uint8_t *image, std::int64_t first, std::int64_t rows) const {
  const std::int64_t left = std::min(window_.pad_begin[1], width_), used = std::min(x_.w, width_ - left);
  const std::int64_t right = width_ - left - used;
  const std::int64_t y0 = first * window_.stride[0] - window_.pad_begin[0];
  const T zero = zero_point_;
  for (std::int64_t i = 0; i < rows_read(window_, rows); ++i) {
    T *at = to + i * width_ * x_.c;
    const std::int64_t y = y0 + i;
    if (y < 0 || y >= x_.h) continue;
    const std::uint8_t *from = image + y * x_.w * x_.pixel;
    at = std::fill_n(at, left * x_.c, zero);
    if (x_.pixel == x_.c)
      at = copy_bytes(at, from, used * x_.c);
    else
      for (std::int64_t p = 0; p < used; ++p) at = copy_bytes(at, from + p * x_.pixel, x_.c);
    std::fill_n(at, right * x_.c, zero);
  }
}

void PaddedImage::fill(std::byte *to, const std::uint8_t *image, std::int64_t first, std::int64_t rows) const {
  if (element_ == 1)
    fill_as(reinterpret_cast<std::uint8_t *>(to), image, first, rows);
  else
    fill_as(reinterpret_cast<std::uint16_t *>(to), image, first, rows);
}

std::ptrdiff_t PaddedImage::line_at(std::int64_t line) const {
  const auto begin = [&](std::size_t axis, std::int64_t o) {
    return o * window_.stride[axis] - window_.pad_begin[axis];
  };
  return (begin(2, line / window_.out[0]) * window_.in[0] + begin(0, line % window_.out[0])) * pitch_ -
         window_.pad_begin[1] * pixel_;
}

kernels::GemmStrip *PaddedImage::strips(kernels::GemmStrip *to, std::int64_t first, std::int64_t rows,
                                        std::ptrdiff_t at, std::size_t y_row, std::size_t class_step) const {
  const std::ptrdiff_t down = window_.stride[0] * pitch_, right = window_.stride[1] * pixel_;
  const auto width = static_cast<std::size_t>(window_.out[1]);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Columns &columns = columns_[c];
    for (std::int64_t i = 0, end; i < rows; i = end) {
      const std::size_t lines = lines_of_[static_cast<std::size_t>(first + i)];
      // A column alone is a strip that goes down, to the end of its plane.
      const bool goes_down = columns.count == 1;
      for (end = i + 1; goes_down && end < rows && (first + end) % window_.out[0] != 0; ++end)
        if (lines_of_[static_cast<std::size_t>(first + end)] != lines) break;
      const std::size_t number = lines * columns_.size() + c;
      *to++ = {at + (copies_ ? i * down : line_at(first + i)) + columns.first * right,
               goes_down ? down : right,
               static_cast<std::size_t>(goes_down ? end - i : columns.count),
               runs_[number].data(),
               runs_[number].size(),
               number * class_step,
               y_row + static_cast<std::size_t>(i) * width + static_cast<std::size_t>(columns.first),
               goes_down ? width : 1};
    }
  }
  return to;
}

}  // namespace qtn::runtime
