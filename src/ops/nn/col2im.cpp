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
  const std::size_t rank = b.image.size();
  dispatch_number(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    parallel_for(static_cast<std::size_t>(y.dim(0) * y.dim(1)), [&](std::size_t plane) {
      const T *from = x.as<const T>() + static_cast<std::int64_t>(plane) * taps * places;
      T *to = y.as<T>() + static_cast<std::int64_t>(plane) * pixels;
      std::fill_n(to, pixels, T(0));
      for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t place = 0; place < places; ++place, ++from) {
          std::int64_t at = 0, step = 1, tap_rest = tap, place_rest = place;
          bool inside = true;
          for (std::size_t i = rank; i-- > 0;) {
            const std::int64_t pixel =
                place_rest % b.places[i] * b.stride[i] - b.pads[i] + tap_rest % b.block[i] * b.dilation[i];
            inside = inside && pixel >= 0 && pixel < b.image[i];
            at += pixel * step;
            step *= b.image[i];
            tap_rest /= b.block[i];
            place_rest /= b.places[i];
          }
          if (inside) to[at] = static_cast<T>(to[at] + *from);
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
