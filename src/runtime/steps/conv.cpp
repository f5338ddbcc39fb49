// SPDX-License-Identifier: Apache-2.0
// A convolution is a product over rows that come from its image in one of three ways: a pointwise one has them there;
// a kernel that reads images finds them in a copy with borders, or without copy where bytes need none; for other
// kernels, and for narrow outputs, they are gathered. winograd.cpp has those of 3x3 for which there are fewer products.
#include "base/size.hpp"
#include "kernels/kernel.hpp"
#include "runtime/im2row.hpp"
#include "runtime/layout.hpp"
#include "runtime/padded.hpp"
#include "runtime/steps/linear.hpp"

namespace qtn::runtime {
namespace {

// Strips of fewer rows than this leave too much of a tile empty.
constexpr std::int64_t kNarrow = 4;

// In all sets of taps inside the image, each of which has runs and biases of its own.
constexpr std::size_t kMostTaps = std::size_t{1} << 20;

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
  PointwiseStep(const Product &product, const TaskGrid &grid, std::ptrdiff_t pixel)
      : LinearStep(product, grid), pixel_(pixel), channels_(product.k) {}

 private:
  Rows rows(const std::uint8_t *x, const Task &task, std::byte *) const override {
    return {x + static_cast<std::ptrdiff_t>(task.first) * pixel_ + task.group * channels_, pixel_, task.count};
  }

  std::ptrdiff_t pixel_;
  std::size_t channels_;
};

class GatheredStep final : public LinearStep {
 public:
  GatheredStep(const Product &product, const TaskGrid &grid, const Im2Row &gather)
      : LinearStep(product, grid),
        gather_(gather),
        row_block_(grid.row_block),
        pixels_(static_cast<std::size_t>(gather.window.outputs_count())) {}

 private:
  /// Rows a multiple of 4096 bytes apart would meet in one set of the first level of cache.
  std::size_t row_stride() const {
    const std::size_t row = round_up(gather_.row_bytes(), 4);
    return row % 4096 == 0 ? row + kAlignment : row;
  }
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

class ImageStep final : public LinearStep {
 public:
  /// `bias` as PaddedImage::bias gives it; empty: the packed one serves all strips.
  ImageStep(const Product &product, const TaskGrid &grid, const PaddedImage &padded, std::vector<std::int32_t> bias)
      : LinearStep(product, grid),
        padded_(padded),
        lines_(static_cast<std::size_t>(padded.lines())),
        out_w_(static_cast<std::size_t>(padded.window().out[1])),
        most_rows_(grid.row_block / out_w_),
        panels_(round_up(product.out, product.form.nr)),
        class_step_(product.groups * panels_),
        bias_(std::move(bias)) {}

  std::size_t held_bytes() const override { return bias_.capacity() * sizeof(bias_[0]); }

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
    for_images(task.first / out_w_, task.count / out_w_, lines_,
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
            {strips, static_cast<std::size_t>(end - strips),
             bias_.empty() ? nullptr : bias_.data() + task.group * panels_ + task.column}};
  }

  PaddedImage padded_;
  std::size_t lines_, out_w_, most_rows_, panels_, class_step_;
  std::vector<std::int32_t> bias_;  ///< [class of strips][group][panels]
};

/// Whether reading the image is worth its copy.
bool reads_image(const kernels::GemmForm &form, const ops::Window &window) {
  if (form.image_bytes == 0 || window.out[1] < kNarrow || PaddedImage::taps_of_sets(window) > kMostTaps) return false;
  // Where windows do not overlap, gathered rows are no more than the pixels that are read.
  return form.image_bytes == 1 || window.kernel[1] > window.stride[1];
}

/// What integers and floats do not share. `padded` is nullptr where rows are gathered, or lie there.
struct Operands {
  Image x;  ///< channels and pixels in bytes
  std::uint8_t zero_point;
  bool in_strips;  ///< whether a product may read the image where it lies
  std::function<Product(const PaddedImage *padded)> product;
  std::function<std::vector<std::int32_t>(const PaddedImage &padded, std::size_t panels)> bias;
};

StepPtr make_conv(const Operands &operands, const kernels::GemmForm &form, std::size_t rows, const ops::Window &window,
                  std::size_t groups, std::size_t out, std::size_t k) {
  const Image &x = operands.x;
  const auto all = [](const ops::Window::Dims &d, std::int64_t n) { return d == ops::Window::Dims{n, n, n}; };
  // Phases of transposed convolutions may leave out the last pixels.
  const bool in_place = all(window.pad_begin, 0) && window.out == window.in;
  if (all(window.kernel, 1) && all(window.stride, 1) && in_place) {
    const Product product = operands.product(nullptr);
    return std::make_unique<PointwiseStep>(product, matrix_grid(product, rows, x.pixel), x.pixel);
  }
  if (operands.in_strips && reads_image(form, window)) {
    const auto width = static_cast<std::size_t>(window.out[1]);
    const TaskGrid grid = image_grid(form, rows, width, PaddedImage::bytes_of_pixel(window, x, form), out, k);
    const PaddedImage padded(window, x, static_cast<std::int64_t>(groups), operands.zero_point, form,
                             grid.row_block / width);
    if (padded.is_worth_filling(out) && (is_flat(window) || !padded.copies())) {
      std::vector<std::int32_t> bias;
      if (operands.bias) bias = operands.bias(padded, round_up(out, form.nr));
      return std::make_unique<ImageStep>(operands.product(&padded), grid, padded, std::move(bias));
    }
  }
  const Im2Row gather{window, x, x.c / static_cast<std::int64_t>(groups), operands.zero_point};
  return std::make_unique<GatheredStep>(operands.product(nullptr), task_grid(form, rows, k, out, k), gather);
}

/// The cache for weights in the order in which they are read.
PackCache cache_of(const PaddedImage *padded, const PackCache &of_gathered) {
  if (!padded) return of_gathered;
  return
      [form = padded->weights_form(), of_gathered](std::size_t, const auto &pack) { return of_gathered(form, pack); };
}

std::size_t rows_of(const Image &y) { return static_cast<std::size_t>(y.n * y.pixels()); }

std::int64_t macs_of(const Image &y, std::size_t groups, std::size_t out, std::size_t k) {
  return y.n * y.pixels() * static_cast<std::int64_t>(groups * out * k);
}

}  // namespace

StepPtr make_conv(const Edge &x, const Edge &y, const ops::Window &window, const LinearWeights &w,
                  const QuantizedRange &range, const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  const kernels::GemmKernel &kernel = gemm_kernel(w, isa);
  if (StepPtr step = make_winograd_conv(x, y, window, w, range, clamp, kernel.isa, cache)) return step;
  const Image to = *as_image(y.form.shape, y.form.strides);
  const auto product = [&](const PaddedImage *padded) {
    return integer_product(x, y, static_cast<std::size_t>(to.pixel), padded ? padded->weights(w) : w, range, clamp,
                           kernel, cache_of(padded, cache));
  };
  const auto bias = [&](const PaddedImage &padded, std::size_t panels) { return padded.bias(w, panels); };
  const Operands operands{*as_image(x.form.shape, x.form.strides),
                          static_cast<std::uint8_t>(x.form.quantizer->zero_point()), true, product, bias};
  StepPtr step = make_conv(operands, kernel, rows_of(to), window, w.groups, w.out, w.k);
  step->macs = macs_of(to, w.groups, w.out, w.k);
  return step;
}

StepPtr make_dynamic_conv(const DynamicOperand &x, const Edge &y, const ops::Window &window, const DynamicWeights &w,
                          const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  const LinearWeights &integers = w.integers;
  const kernels::GemmKernel &kernel = gemm_kernel(integers, isa);
  const Image to = *as_image(y.form.shape, y.form.strides);
  const auto product = [&](const PaddedImage *padded) {
    const DynamicWeights as_read{padded ? padded->weights(integers) : integers, w.bias, w.zeros};
    return dynamic_product(x, y, static_cast<std::size_t>(to.pixel), as_read, clamp, kernel, isa,
                           cache_of(padded, cache));
  };
  // Sums of rows, which zero points of weights are multiplied by, are those of gathered ones.
  const Operands operands{*as_image(x.q.form.shape, x.q.form.strides), 0, w.zeros.empty(), product, nullptr};
  StepPtr step = make_conv(operands, kernel, rows_of(to), window, integers.groups, integers.out, integers.k);
  step->macs = macs_of(to, integers.groups, integers.out, integers.k);
  return step;
}

StepPtr make_real_conv(const Edge &x, const Edge &y, const ops::Window &window, const RealWeights &w,
                       const ops::Clamp &clamp, Isa isa, const PackCache &cache) {
  const kernels::GemmRealKernel &kernel = kernels::choose(kernels::gemm_real_kernels(), isa);
  const Image to = *as_image(y.form.shape, y.form.strides);
  const auto product = [&](const PaddedImage *) {
    return real_product(x, y, static_cast<std::size_t>(to.pixel), w, clamp, kernel, cache);
  };
  Image bytes = *as_image(x.form.shape, x.form.strides);
  bytes.c *= sizeof(float);
  bytes.pixel *= sizeof(float);
  StepPtr step =
      make_conv({bytes, 0, true, product, nullptr}, kernel, rows_of(to), window, w.groups, w.out, w.k * sizeof(float));
  step->macs = macs_of(to, w.groups, w.out, w.k);
  return step;
}

}  // namespace qtn::runtime
