// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"dilations", AttrSpec::kInts}, {"pads", AttrSpec::kInts}, {"strides", AttrSpec::kInts}};
constexpr const char *kName = "Col2Im";

/// Blocks of an image, of which each column of x is one.
struct Blocks {
  explicit Blocks(const Call &call) {
    const std::vector<std::int64_t> sizes = constant_ints(kName, "image_shape", *call.in(1)),
                                    blocks = constant_ints(kName, "block_shape", *call.in(2));
    const std::size_t rank = sizes.size();
    const auto list = [&](const char *name, std::size_t count, std::int64_t fallback) {
      const auto values = call.attrs.get_ints(name, std::vector<std::int64_t>(count, fallback));
      if (values.size() != count)
        fail(QTN_EINVAL, kName, ": ", name, " has ", values.size(), " values, ", count, " are expected");
      return Shape(values);
    };
    if (rank < 1 || rank + 2 > kMaxRank || blocks.size() != rank)
      fail(QTN_EINVAL, kName, ": image_shape has ", rank, " values, block_shape ", blocks.size());
    if (2 * rank > kMaxRank) fail(QTN_EUNSUPPORTED, kName, ": images of ", rank, " axes");
    image = Shape(sizes), block = Shape(blocks);
    stride = list("strides", rank, 1), dilation = list("dilations", rank, 1), pads = list("pads", 2 * rank, 0);
    constexpr std::int64_t kLimit = std::int64_t{1} << 31;
    for (std::size_t i = 0; i < rank; ++i) {
      for (const std::int64_t v : {image[i], block[i], stride[i], dilation[i], pads[i] + 1, pads[i + rank] + 1})
        if (v < 1 || v > kLimit)
          fail(QTN_EINVAL, kName, ": axis ", i, " of the image is ", image[i], ", block ", block[i], ", stride ",
               stride[i], ", dilation ", dilation[i], ", pads ", pads[i], " and ", pads[i + rank]);
      const std::int64_t room = image[i] + pads[i] + pads[i + rank] - dilation[i] * (block[i] - 1) - 1;
      if (room < 0) fail(QTN_ESHAPE, kName, ": a block of ", block[i], " does not fit an image of ", image[i]);
      places.push_back(room / stride[i] + 1);
    }
  }

  /// Where this element of the block at the first place is, maybe outside of the image.
  Shape first_pixel(std::int64_t tap) const {
    Shape pixel = image;
    for (std::size_t i = image.size(); i-- > 0; tap /= block[i]) pixel[i] = tap % block[i] * dilation[i] - pads[i];
    return pixel;
  }

  /// The row of pixels that a row of places meets, as a number among those of the image; -1 outside.
  std::int64_t line(std::int64_t row, const Shape &first) const {
    std::int64_t line = 0, step = 1;
    for (std::size_t i = image.size() - 1; i-- > 0; row /= places[i], step *= image[i]) {
      const std::int64_t pixel = row % places[i] * stride[i] + first[i];
      if (pixel < 0 || pixel >= image[i]) return -1;
      line += pixel * step;
    }
    return line;
  }

  Shape image, block, stride, dilation, pads, places;
};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_number(kName, "x", x);
  const Blocks b(call);
  if (x.rank() != 3 || x.dim(1) % element_count(b.block) != 0 || x.dim(2) != element_count(b.places))
    fail(QTN_ESHAPE, kName, ": x is ", to_string(x.shape()), ", blocks of ", to_string(b.block), " have ",
         to_string(b.places), " places");
  Shape shape{x.dim(0), x.dim(1) / element_count(b.block)};
  for (const std::int64_t dim : b.image) shape.push_back(dim);
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Blocks b(call);
  const Tensor &x = *call.in(0), &y = outputs[0];
  const std::int64_t taps = element_count(b.block), places = element_count(b.places), pixels = element_count(b.image);
  const std::size_t last = b.image.size() - 1;
  const std::int64_t row = b.places[last], rows = places / row, stride = b.stride[last];
  dispatch_wrapping(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    parallel_for(static_cast<std::size_t>(y.dim(0) * y.dim(1)), [&](std::size_t plane) {
      const T *from = x.as<const T>() + static_cast<std::int64_t>(plane) * taps * places;
      T *to = y.as<T>() + static_cast<std::int64_t>(plane) * pixels;
      std::fill_n(to, pixels, T(0));
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const Shape first = b.first_pixel(tap);
        const auto places_before = [&](std::int64_t pixel) {
          const std::int64_t distance = pixel - first[last];
          return distance <= 0 ? 0 : std::min(row, (distance + stride - 1) / stride);
        };
        const std::int64_t begin = places_before(0), end = places_before(b.image[last]);
        for (std::int64_t r = 0; r < rows; ++r, from += row) {
          const std::int64_t line = b.line(r, first);
          if (line < 0) continue;
          T *pixel = to + line * b.image[last] + first[last] + begin * stride;
          for (std::int64_t i = begin; i < end; ++i, pixel += stride) *pixel = static_cast<T>(*pixel + from[i]);
        }
      }
    });
  });
}

/// Additions for each pixel: as many as blocks have.
double work(const Call &call) { return static_cast<double>(element_count(Blocks(call).block)); }

}  // namespace

const OpDef kCol2Im{.name = kName,
                    .min_inputs = 3,
                    .max_inputs = 3,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .shapes_from = {1, 2},
                    .work = work};

}  // namespace qtn::ops
