// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/indices.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"coordinate_transformation_mode", AttrSpec::kString},
                               {"mode", AttrSpec::kString},
                               {"output_height", AttrSpec::kInt},
                               {"output_width", AttrSpec::kInt},
                               {"sampling_ratio", AttrSpec::kInt},
                               {"spatial_scale", AttrSpec::kFloat}};
constexpr const char *kName = "RoiAlign";

std::string one_of(const Attrs &attrs, const char *key, const char *fallback, const char *other) {
  const std::string value = attrs.get_string(key, fallback);
  if (value != fallback && value != other)
    fail(QTN_EINVAL, kName, ": ", key, " is \"", value, "\", not ", fallback, " or ", other);
  return value;
}

bool half_pixel(const Attrs &attrs) {
  return one_of(attrs, "coordinate_transformation_mode", "half_pixel", "output_half_pixel") == "half_pixel";
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &rois = *call.in(1), &images = *call.in(2);
  require_real(kName, "x", &x);
  require_same_dtype(kName, x, rois);
  require_dtype(kName, "batch_indices", images, {QTN_INT64});
  half_pixel(call.attrs);
  one_of(call.attrs, "mode", "avg", "max");
  const std::int64_t height = call.attrs.get_int("output_height", 1), width = call.attrs.get_int("output_width", 1),
                     ratio = call.attrs.get_int("sampling_ratio", 0);
  if (height < 1 || width < 1 || ratio < 0)
    fail(QTN_EINVAL, kName, ": output_height is ", height, ", output_width ", width, ", sampling_ratio ", ratio);
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4 || !(images.shape() == Shape{rois.dim(0)}))
    fail(QTN_ESHAPE, kName, ": x is ", to_string(x.shape()), ", rois ", to_string(rois.shape()), ", batch_indices ",
         to_string(images.shape()));
  if (rois.dim(0) > 0 && x.count() == 0) fail(QTN_ESHAPE, kName, ": x ", to_string(x.shape()), " is empty");
  return {{x.dtype(), {rois.dim(0), x.dim(1), height, width}}};
}

/// Two neighbours and their weights; both 0 outside of the image.
struct Tap {
  std::int64_t low, high;
  double low_weight, high_weight;
};

/// One axis of a region: `grid` taps for each of the bins.
struct Line {
  /// `start` and `size` are in pixels of x, `pixels` is how many it has.
  Line(double start, double size, std::int64_t bins, std::int64_t ratio, std::int64_t pixels) {
    const auto count = static_cast<double>(bins), last = static_cast<double>(pixels - 1);
    const double wanted = ratio > 0 ? static_cast<double>(ratio) : std::ceil(size / count);
    // In a region far larger than the image nearly all samples are zeros, of which there could be any number.
    if (!(std::abs(start) < 1e9 && wanted <= 4096 + 2 * static_cast<double>(pixels)))
      fail(QTN_EINVAL, kName, ": a region of ", size, " pixels from ", start, " on, with ", wanted,
           " samples for each of ", bins, " places, x has ", pixels);
    grid = static_cast<std::int64_t>(std::max(wanted, 0.0));
    const double bin = size / count;
    for (std::int64_t i = 0; i < bins * grid; ++i) {
      const double at = start + static_cast<double>(i / grid) * bin +
                        (static_cast<double>(i % grid) + 0.5) * bin / static_cast<double>(grid);
      if (at < -1 || at > last + 1) {
        taps.push_back({0, 0, 0, 0});
        continue;
      }
      const double place = std::clamp(at, 0.0, last), low = std::floor(place);
      taps.push_back({static_cast<std::int64_t>(low), static_cast<std::int64_t>(std::min(low + 1, last)),
                      1 - (place - low), place - low});
    }
  }

  std::int64_t grid;
  std::vector<Tap> taps;
};

/// The mean of a bin's samples, or the largest weighted pixel of them, as ONNX Runtime defines it.
template <class T>
double pool(const T *plane, std::int64_t width, std::span<const Tap> rows, std::span<const Tap> columns, bool largest) {
  double sum = 0, top = 0;
  bool first = true;
  for (const Tap &y : rows)
    for (const Tap &x : columns) {
      const T *low = plane + y.low * width, *high = plane + y.high * width;
      const double parts[] = {
          y.low_weight * x.low_weight * static_cast<double>(low[x.low]),
          y.low_weight * x.high_weight * static_cast<double>(low[x.high]),
          y.high_weight * x.low_weight * static_cast<double>(high[x.low]),
          y.high_weight * x.high_weight * static_cast<double>(high[x.high]),
      };
      sum += parts[0] + parts[1] + parts[2] + parts[3];
      const double most = std::max(std::max(parts[0], parts[1]), std::max(parts[2], parts[3]));
      top = first ? most : std::max(top, most);
      first = false;
    }
  return largest ? top : sum / static_cast<double>(std::max<std::size_t>(1, rows.size() * columns.size()));
}

template <class T>
void align(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  const std::vector<std::int64_t> images = indices_within(kName, *call.in(2), x.shape(), 0);
  const bool half = half_pixel(call.attrs), largest = call.attrs.get_string("mode", "avg") == "max";
  const double scale = call.attrs.get_float("spatial_scale", 1), shift = half ? 0.5 : 0;
  const std::int64_t ratio = call.attrs.get_int("sampling_ratio", 0), channels = x.dim(1), height = x.dim(2),
                     width = x.dim(3), out_height = y.dim(2), out_width = y.dim(3);
  for (std::int64_t n = 0; n < y.dim(0); ++n) {
    const T *roi = call.in(1)->as<const T>() + 4 * n;
    const auto line = [&](int axis, std::int64_t bins, std::int64_t pixels) {
      const double start = static_cast<double>(roi[axis]) * scale - shift,
                   size = static_cast<double>(roi[axis + 2]) * scale - shift - start;
      return Line(start, half ? size : std::max(size, 1.0), bins, ratio, pixels);
    };
    const Line rows = line(1, out_height, height), columns = line(0, out_width, width);
    if (static_cast<double>(rows.grid) * static_cast<double>(columns.grid) >
        static_cast<double>(4 * height * width) + 65536)
      fail(QTN_EINVAL, kName, ": ", rows.grid, " times ", columns.grid, " samples for each place, x is ",
           to_string(x.shape()));
    const T *image = x.as<const T>() + images[static_cast<std::size_t>(n)] * channels * height * width;
    parallel_for(static_cast<std::size_t>(channels), [&](std::size_t c) {
      const T *plane = image + static_cast<std::int64_t>(c) * height * width;
      T *to = y.as<T>() + (n * channels + static_cast<std::int64_t>(c)) * out_height * out_width;
      const auto bin = [](const Line &l, std::int64_t i) {
        return std::span(l.taps).subspan(static_cast<std::size_t>(i * l.grid), static_cast<std::size_t>(l.grid));
      };
      for (std::int64_t i = 0; i < out_height; ++i)
        for (std::int64_t j = 0; j < out_width; ++j)
          *to++ = static_cast<T>(pool(plane, width, bin(rows, i), bin(columns, j), largest));
    });
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? align<double>(call, outputs[0]) : align<float>(call, outputs[0]);
}

/// Opset 16 moved regions by half a pixel unless it is asked not to.
void upgrade(OldNode &node) {
  if (node.opset < 16) node.attrs.set("coordinate_transformation_mode", std::string("output_half_pixel"));
}

/// So many samples at most make one place.
double work(const Call &call) {
  const Shape &x = call.in(0)->shape();
  return call.attrs.get_int("sampling_ratio", 0) == 0 ? static_cast<double>(element_count(x, 2, x.size())) : 65536;
}

}  // namespace

const OpDef kRoiAlign{.name = kName,
                      .min_inputs = 3,
                      .max_inputs = 3,
                      .max_outputs = 1,
                      .attrs = kAttrs,
                      .infer = infer,
                      .run = run,
                      .work = work,
                      .upgrade = upgrade};

}  // namespace qtn::ops
