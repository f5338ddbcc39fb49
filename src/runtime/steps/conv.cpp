// SPDX-License-Identifier: Apache-2.0
// A convolution is a product over rows that come from its picture in one of three ways: a pointwise one has them there;
// a kernel that reads pictures finds them in a copy with borders, or without copy where bytes need none; for other
// kernels, and for narrow outputs, they are gathered.
#include "base/size.hpp"
#include "runtime/im2row.hpp"
#include "runtime/layout.hpp"
#include "runtime/padded.hpp"
#include "runtime/steps/linear.hpp"

namespace qtn::runtime {
namespace {

// Strips of fewer rows than this leave too much of a tile empty.
constexpr std::int64_t kNarrow = 7;

// About how many rows and columns of outputs may have windows that reach out of the picture differently.
constexpr std::size_t kMostRuns = std::size_t{1} << 20;

/// Parts of [first, first + count), in rows counted over all images, that lie in one image: body(image, row in the
/// image, rows, rows before).
template <class Body>
void for_images(std::size_t first, std::size_t count, std::size_t rows_of_image, Body &&body) {
  for (std::size_t done = 0; done < count;) {
    const std::size_t row = (first + done) % rows_of_image, rows = std::min(count - done, rows_of_image - row);
    body(static_cast<std::ptrdiff_t>((first + done) / rows_of_image), row, rows, done);
    done += rows;
  }
}

class PointwiseStep final : public LinearStep {
 public:
  PointwiseStep(const Product &product, const LinearWeights &w, const TaskGrid &grid, std::ptrdiff_t pixel,
                const PackCache &cache)
      : LinearStep(product, w, grid, cache), pixel_(pixel), channels_(w.k) {}

 private:
  Rows rows(const std::uint8_t *x, const Task &task, std::byte *) const override {
    return {x + static_cast<std::ptrdiff_t>(task.first) * pixel_ + task.group * channels_, pixel_, task.count};
  }

  std::ptrdiff_t pixel_;
  std::size_t channels_;
};

class GatheredStep final : public LinearStep {
 public:
  GatheredStep(const Product &product, const LinearWeights &w, const TaskGrid &grid, const Im2Row &gather,
               const PackCache &cache)
      : LinearStep(product, w, grid, cache),
        gather_(gather),
        row_block_(grid.row_block),
        pixels_(static_cast<std::size_t>(gather.window.outputs_count())) {}

 private:
  std::size_t row_stride() const { return round_up(gather_.row_bytes(), 4); }
  std::size_t rows_bytes() const override { return row_block_ * row_stride() + kReadSlack; }
  bool groups_share_rows() const override { return false; }

  Rows rows(const std::uint8_t *x, const Task &task, std::byte *scratch) const override {
    auto *to = reinterpret_cast<std::uint8_t *>(scratch);
    const auto stride = static_cast<std::ptrdiff_t>(row_stride());
    if (task.fresh)
      for_images(task.first, task.count, pixels_,
                 [&](std::ptrdiff_t image, std::size_t first, std::size_t count, std::size_t done) {
                   const std::uint8_t *from = x + image * gather_.x.pixels() * gather_.x.pixel +
                                              static_cast<std::int64_t>(task.group) * gather_.channels;
                   gather_.fill(to + static_cast<std::ptrdiff_t>(done) * stride, stride, from,
                                static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
                 });
    return {to, stride, task.count};
  }

  Im2Row gather_;
  std::size_t row_block_, pixels_;
};

class PictureStep final : public LinearStep {
 public:
  /// `w` as PaddedPicture::weights gives them.
  PictureStep(const Product &product, const LinearWeights &w, const TaskGrid &grid, const PaddedPicture &padded,
              const PackCache &cache)
      : LinearStep(product, w, grid, cache),
        padded_(padded),
        out_h_(static_cast<std::size_t>(padded.window().out[0])),
        out_w_(static_cast<std::size_t>(padded.window().out[1])),
        most_rows_(grid.row_block / out_w_),
        panels_(round_up(w.out, product.kernel.nr)),
        class_step_(w.groups * panels_),
        bias_(padded.bias(w, panels_)) {}

 private:
  std::size_t strips_bytes() const {
    return round_up(padded_.most_strips(most_rows_) * sizeof(kernels::GemmStrip), kAlignment);
  }
  std::size_t rows_bytes() const override { return strips_bytes() + padded_.bytes(most_rows_); }

  Rows rows(const std::uint8_t *x, const Task &task, std::byte *scratch) const override {
    auto *strips = reinterpret_cast<kernels::GemmStrip *>(scratch);
    std::byte *copy = scratch + strips_bytes();
    kernels::GemmStrip *end = strips;
    std::ptrdiff_t copied = 0;
    for_images(task.first / out_w_, task.count / out_w_, out_h_,
               [&](std::ptrdiff_t image, std::size_t first, std::size_t count, std::size_t done) {
                 const auto row = static_cast<std::int64_t>(first), rows = static_cast<std::int64_t>(count);
                 const std::ptrdiff_t start = padded_.image_bytes() * image;
                 if (padded_.copies() && task.fresh) padded_.fill(copy + copied, x + start, row, rows);
                 end = padded_.strips(end, row, rows, padded_.copies() ? copied : start, done * out_w_, class_step_);
                 copied += padded_.copied_bytes(rows);
               });
    const std::ptrdiff_t group = static_cast<std::ptrdiff_t>(task.group);
    return {(padded_.copies() ? reinterpret_cast<const std::uint8_t *>(copy) : x) + group * padded_.group_bytes(),
            0,
            task.count,
            {strips, static_cast<std::size_t>(end - strips), bias_.data() + task.group * panels_ + task.column}};
  }

  PaddedPicture padded_;
  std::size_t out_h_, out_w_, most_rows_, panels_, class_step_;
  std::vector<std::int32_t> bias_;  ///< [class of strips][group][panels]
};

/// Whether reading the picture is worth its copy.
bool reads_picture(const kernels::GemmKernel &kernel, const ops::Window &window) {
  if (kernel.picture_bytes == 0 || window.out[1] < kNarrow || !is_flat(window)) return false;
  // Each set of taps inside the picture has its own runs and biases.
  Size runs = 1;
  for (const std::size_t axis : {0, 1})
    runs = runs * window.kernel[axis] * std::min(window.out[axis], 2 * window.kernel[axis] + 1);
  if (runs.value() > kMostRuns) return false;
  // Where windows do not overlap, gathered rows are no more than the pixels that are read.
  return kernel.picture_bytes == 1 || window.kernel[1] > window.stride[1];
}

}  // namespace

StepPtr make_conv(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                  const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  const kernels::GemmKernel &kernel = gemm_kernel(w, isa);
  const Picture from = *as_picture(x.form.shape, x.form.strides), to = *as_picture(y.form.shape, y.form.strides);
  const LinearStep::Product product{x, y, static_cast<std::size_t>(to.pixel), range, clamp, kernel};
  const auto zero_point = static_cast<std::uint8_t>(x.form.quantizer->zero_point());
  const std::size_t rows = static_cast<std::size_t>(to.n * to.pixels());
  const auto all = [](const ops::Window::Dims &d, std::int64_t n) { return d == ops::Window::Dims{n, n, n}; };
  const bool pads = !all(window.pad_begin, 0) || !all(window.pad_end, 0);
  StepPtr step;
  if (all(window.kernel, 1) && all(window.stride, 1) && !pads) {
    const TaskGrid grid = task_grid(kernel, rows, kernel.mr, w.k, w.out, w.k);
    step = std::make_unique<PointwiseStep>(product, w, grid, from.pixel, cache);
  } else if (reads_picture(kernel, window)) {
    const auto width = static_cast<std::size_t>(window.out[1]);
    const TaskGrid grid =
        task_grid(kernel, rows, width, PaddedPicture::bytes_of_pixel(window, from, kernel), w.out, w.k);
    const PaddedPicture padded(window, from, static_cast<std::int64_t>(w.groups), zero_point, kernel,
                               grid.row_block / width);
    const LinearWeights spread = padded.weights(w);
    const auto cache_of_form = [&](std::size_t, const auto &pack) { return cache(padded.weights_form(), pack); };
    step = std::make_unique<PictureStep>(product, spread, grid, padded, cache_of_form);
  } else {
    const Im2Row gather{window, from, from.c / static_cast<std::int64_t>(w.groups), zero_point};
    const TaskGrid grid = task_grid(kernel, rows, kernel.mr, w.k, w.out, w.k);
    step = std::make_unique<GatheredStep>(product, w, grid, gather, cache);
  }
  step->macs = from.n * window.outputs_count() * static_cast<std::int64_t>(w.groups * w.out * w.k);
  return step;
}

}  // namespace qtn::runtime
