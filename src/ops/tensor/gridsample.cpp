// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/cubic.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"align_corners", AttrSpec::kInt}, {"mode", AttrSpec::kString}, {"padding_mode", AttrSpec::kString}};
constexpr const char *kName = "GridSample";
constexpr std::size_t kMaxAxes = 3;

enum class Mode { linear, nearest, cubic };
enum class Padding { zeros, border, reflection };

struct Rule {
  Mode mode;
  Padding padding;
  bool corners;
};

/// Opsets 16 to 19 said bilinear and bicubic.
Rule rule_of(const Attrs &attrs) {
  const std::string mode = attrs.get_string("mode", "linear"), padding = attrs.get_string("padding_mode", "zeros");
  const bool linear = mode == "linear" || mode == "bilinear", cubic = mode == "cubic" || mode == "bicubic";
  if (!linear && !cubic && mode != "nearest")
    fail(QTN_EINVAL, kName, ": mode is \"", mode, "\", not linear, nearest or cubic");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    fail(QTN_EINVAL, kName, ": padding_mode is \"", padding, "\", not zeros, border or reflection");
  return {linear  ? Mode::linear
          : cubic ? Mode::cubic
                  : Mode::nearest,
          padding == "zeros"    ? Padding::zeros
          : padding == "border" ? Padding::border
                                : Padding::reflection,
          attrs.get_int("align_corners", 0) != 0};
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &grid = *call.in(1);
  require_real(kName, "x", &x);
  require_real(kName, "grid", &grid);
  rule_of(call.attrs);
  if (x.rank() < 3 || x.rank() > 2 + kMaxAxes)
    fail(x.rank() < 3 ? QTN_ESHAPE : QTN_EUNSUPPORTED, kName,
         ": x must have 1 to 3 spatial axes after batch and channels, it is ", to_string(x.shape()));
  const auto axes = static_cast<std::int64_t>(x.rank()) - 2;
  if (grid.rank() != x.rank() || grid.dim(0) != x.dim(0) || grid.shape().back() != axes)
    fail(QTN_ESHAPE, kName, ": grid ", to_string(grid.shape()), " does not hold places of x ", to_string(x.shape()));
  Shape shape{x.dim(0), x.dim(1)};
  for (std::size_t i = 1; i + 1 < grid.rank(); ++i) shape.push_back(grid.dim(i));
  if (element_count(shape) > 0 && x.count() == 0) fail(QTN_ESHAPE, kName, ": x ", to_string(x.shape()), " is empty");
  return {{x.dtype(), shape}};
}

/// v mirrored at both ends of [lo, hi] until it lies between.
double reflect(double v, double lo, double hi) {
  const double range = hi - lo;
  if (range <= 0) return lo;
  const double at = std::fmod(std::abs(v - lo), 2 * range);
  return lo + (at <= range ? at : 2 * range - at);
}

struct Axis {
  std::int64_t length, stride;
  Rule rule;

  double lo() const { return rule.corners ? 0 : -0.5; }
  double hi() const { return static_cast<double>(length) + (rule.corners ? -1 : -0.5); }

  /// Where a place between -1 and 1 lies, in pixels. What is no number, or far away, lies outside.
  double place(double normalized) const {
    const auto n = static_cast<double>(length);
    double v = rule.corners ? (normalized + 1) / 2 * (n - 1) : ((normalized + 1) * n - 1) / 2;
    if (!(std::abs(v) < 1e9)) v = v > 0 ? 1e9 : -1e9;
    if (rule.mode == Mode::nearest) v = std::nearbyint(v);
    if (v >= lo() && v <= hi()) return v;
    // Pixels that a cubic weights are clamped one by one, as in PyTorch.
    if (rule.padding == Padding::border && rule.mode != Mode::cubic) return std::clamp(v, 0.0, n - 1);
    return rule.padding == Padding::reflection ? reflect(v, lo(), hi()) : v;
  }

  /// The pixel that stands for position i, or -1.
  std::int64_t pixel(std::int64_t i) const {
    if (i >= 0 && i < length) return i;
    if (rule.padding == Padding::zeros) return -1;
    if (rule.padding == Padding::border) return std::clamp<std::int64_t>(i, 0, length - 1);
    const double at = reflect(static_cast<double>(i), lo(), hi());
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, length - 1);
  }
};

/// Pixels of an axis that make up a place on it, as offsets, and their weights.
struct Line {
  std::array<std::int64_t, 4> offsets;
  std::array<double, 4> weights;
  std::size_t count = 0;

  Line(const Axis &axis, double at) {
    const double below = std::floor(at), rest = at - below;
    const auto first = static_cast<std::int64_t>(below);
    if (axis.rule.mode == Mode::nearest)
      take(axis, first, std::array{1.0});
    else if (axis.rule.mode == Mode::linear)
      take(axis, first, std::array{1 - rest, rest});
    else
      take(axis, first - 1, cubic_weights(rest, -0.75));
  }

 private:
  template <std::size_t N>
  void take(const Axis &axis, std::int64_t first, const std::array<double, N> &of_pixels) {
    for (std::size_t k = 0; k < N; ++k) {
      const std::int64_t pixel = axis.pixel(first + static_cast<std::int64_t>(k));
      if (pixel < 0) continue;
      offsets[count] = pixel * axis.stride;
      weights[count++] = of_pixels[k];
    }
  }
};

struct Tap {
  std::int64_t offset;
  double weight;
};

/// The pixels of a plane that make up one output, and their weights.
struct Taps {
  std::array<Tap, 64> list;
  std::size_t count = 1;

  Taps() { list[0] = {0, 1}; }

  /// Each with each of the line, from the last one on, so that none is overwritten before.
  void cross(const Line &line) {
    for (std::size_t i = count; i-- > 0;) {
      const Tap tap = list[i];
      for (std::size_t k = line.count; k-- > 0;)
        list[i * line.count + k] = {tap.offset + line.offsets[k], tap.weight * line.weights[k]};
    }
    count *= line.count;
  }
};

/// The taps of place i of all, counted from the first one of the first image on.
Taps taps_of(const Tensor &x, const Shape &strides, const Tensor &grid, const Rule &rule, std::int64_t i) {
  const std::size_t axes = x.rank() - 2;
  Taps taps;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const Axis along{x.dim(axis + 2), strides[axis + 2], rule};
    const std::int64_t k = i * static_cast<std::int64_t>(axes) + static_cast<std::int64_t>(axes - 1 - axis);
    const double given =
        grid.dtype() == QTN_FLOAT64 ? grid.as<const double>()[k] : static_cast<double>(grid.as<const float>()[k]);
    taps.cross({along, along.place(given)});
  }
  return taps;
}

template <class T>
T sample(const T *plane, const Taps &taps) {
  const auto part = [&](std::size_t t) {
    return static_cast<double>(plane[taps.list[t].offset]) * taps.list[t].weight;
  };
  if (taps.count == 4) return static_cast<T>(part(0) + part(1) + part(2) + part(3));  // most are between four pixels
  double sum = 0;
  for (std::size_t t = 0; t < taps.count; ++t) sum += part(t);
  return static_cast<T>(sum);
}

/// Places next to each other are looked up once for all channels.
template <class T>
void sample(const Tensor &x, const Tensor &grid, const Tensor &y, const Rule &rule) {
  constexpr std::int64_t kPlaces = 16;
  const Shape strides = contiguous_strides(x.shape());
  const std::int64_t channels = x.dim(1), in = element_count(x.shape(), 2, x.rank()),
                     out = element_count(y.shape(), 2, y.rank());
  const std::int64_t blocks = (out + kPlaces - 1) / kPlaces,
                     task = std::max<std::int64_t>(1, (1 << 11) / std::max<std::int64_t>(1, channels));
  parallel_for(static_cast<std::size_t>((y.dim(0) * blocks + task - 1) / task), [&](std::size_t index) {
    const std::int64_t first = static_cast<std::int64_t>(index) * task;
    for (std::int64_t block = first; block < std::min(y.dim(0) * blocks, first + task); ++block) {
      const std::int64_t image = block / blocks, begin = block % blocks * kPlaces,
                         count = std::min(kPlaces, out - begin);
      std::array<Taps, kPlaces> taps;
      for (std::int64_t i = 0; i < count; ++i)
        taps[static_cast<std::size_t>(i)] = taps_of(x, strides, grid, rule, image * out + begin + i);
      for (std::int64_t c = image * channels; c < (image + 1) * channels; ++c)
        for (std::int64_t i = 0; i < count; ++i)
          y.as<T>()[c * out + begin + i] = sample(x.as<const T>() + c * in, taps[static_cast<std::size_t>(i)]);
    }
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Rule rule = rule_of(call.attrs);
  const Tensor &x = *call.in(0);
  x.dtype() == QTN_FLOAT64 ? sample<double>(x, *call.in(1), outputs[0], rule)
                           : sample<float>(x, *call.in(1), outputs[0], rule);
}

}  // namespace

const OpDef kGridSample{
    .name = kName, .min_inputs = 2, .max_inputs = 2, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
