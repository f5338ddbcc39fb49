// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/find_named.hpp"
#include "base/parallel.hpp"
#include "base/size.hpp"
#include "base/stable_order.hpp"
#include "ops/common/axis_gather.hpp"
#include "ops/common/cast.hpp"
#include "ops/common/cubic.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/fill.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/old_nearest.hpp"
#include "ops/common/prepared.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"antialias", AttrSpec::kInt},
                               {"axes", AttrSpec::kInts},
                               {"coordinate_transformation_mode", AttrSpec::kString},
                               {"cubic_coeff_a", AttrSpec::kFloat},
                               {"exclude_outside", AttrSpec::kInt},
                               {"extrapolation_value", AttrSpec::kFloat},
                               {"keep_aspect_ratio_policy", AttrSpec::kString},
                               {"mode", AttrSpec::kString},
                               {"nearest_mode", AttrSpec::kString},
                               {kRoundsByScale, AttrSpec::kInt}};

struct Plan {
  Shape shape;
  std::array<double, kMaxRank> scale{};
};

bool present(const Tensor *t) { return t && t->count() > 0; }

std::vector<std::size_t> axes_of(const Call &call) {
  const std::size_t rank = call.in(0)->rank();
  if (call.attrs.has("axes")) return constant_axes("Resize", Tensor::from_ints(call.attrs.get_ints("axes")), rank);
  std::vector<std::size_t> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = i;
  return axes;
}

/// not_larger and not_smaller give all axes one scale, with which they just fit into or cover the sizes.
void keep_aspect_ratio(const std::string &policy, const Shape &x, const std::vector<std::size_t> &axes, Plan &plan) {
  if (policy == "stretch" || axes.empty()) return;
  double scale = plan.scale[axes[0]];
  for (const std::size_t axis : axes)
    scale = policy == "not_larger" ? std::min(scale, plan.scale[axis]) : std::max(scale, plan.scale[axis]);
  for (const std::size_t axis : axes) {
    const double size = std::floor(scale * static_cast<double>(x[axis]) + 0.5);
    if (!(size < 2147483648.0)) fail(QTN_EINVAL, "Resize: a scale is ", scale);
    plan.shape[axis] = static_cast<std::int64_t>(size);
    plan.scale[axis] = scale;
  }
}

Plan plan_of(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::vector<std::size_t> axes = axes_of(call);
  Plan plan{x.shape(), {}};
  plan.scale.fill(1);
  const Tensor *scales = call.in(2), *sizes = call.in(3);
  if (present(scales) == present(sizes)) fail(QTN_EINVAL, "Resize: exactly one of scales and sizes must be given");
  const Tensor &given = present(scales) ? *scales : *sizes;
  if (given.count() != static_cast<std::int64_t>(axes.size()))
    fail(QTN_ESHAPE, "Resize: ", given.count(), " ", present(scales) ? "scales" : "sizes", " for ", axes.size(),
         " axes of x ", to_string(x.shape()));
  if (present(scales)) {
    const std::vector<float> values = float_values(require_constant("Resize", "scales", given), "Resize: scales");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      // In float32, as ONNX's own shape inference multiplies.
      const float size = static_cast<float>(x.dim(axes[i])) * values[i];
      if (!(values[i] > 0) || !(size < 2147483648.0f)) fail(QTN_EINVAL, "Resize: a scale is ", values[i]);
      plan.shape[axes[i]] = static_cast<std::int64_t>(std::floor(size));
      plan.scale[axes[i]] = static_cast<double>(values[i]);
    }
  } else {
    const std::vector<std::int64_t> values = constant_ints("Resize", "sizes", given);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::int64_t dim = x.dim(axes[i]);
      if (values[i] < 0 || values[i] > std::numeric_limits<std::int32_t>::max())
        fail(QTN_EINVAL, "Resize: a size is ", values[i]);
      plan.shape[axes[i]] = values[i];
      plan.scale[axes[i]] = static_cast<double>(values[i]) / static_cast<double>(std::max<std::int64_t>(dim, 1));
    }
    keep_aspect_ratio(call.attrs.get_string("keep_aspect_ratio_policy", "stretch"), x.shape(), axes, plan);
  }
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (x.dim(i) == 0 && plan.shape[i] > 0) fail(QTN_ESHAPE, "Resize: x ", to_string(x.shape()), " is empty");
  return plan;
}

void one_of(const char *attr, const std::string &value, std::initializer_list<std::string_view> known) {
  find_named(known, value, "Resize", attr);
}

std::string coordinate_mode(const Attrs &attrs) {
  return attrs.get_string("coordinate_transformation_mode", "half_pixel");
}
std::string nearest_mode(const Attrs &attrs) { return attrs.get_string("nearest_mode", "round_prefer_floor"); }

bool is_nearest(const Attrs &attrs) { return attrs.get_string("mode", "nearest") == "nearest"; }

Types infer(const Call &call) {
  const Attrs &attrs = call.attrs;
  one_of("mode", attrs.get_string("mode", "nearest"), {"nearest", "linear", "cubic"});
  one_of("coordinate_transformation_mode", coordinate_mode(attrs),
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
          "tf_crop_and_resize", "tf_half_pixel_for_nn"});
  one_of("nearest_mode", nearest_mode(attrs), {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  if (present(call.in(3)))
    one_of("keep_aspect_ratio_policy", attrs.get_string("keep_aspect_ratio_policy", "stretch"),
           {"stretch", "not_larger", "not_smaller"});
  if (is_nearest(attrs) && attrs.get_int("antialias", 0) != 0)
    fail(QTN_EINVAL, "Resize: antialias goes with mode linear or cubic");
  if (coordinate_mode(attrs) == "tf_crop_and_resize") {
    const auto expected = static_cast<std::int64_t>(2 * axes_of(call).size());
    if (const Tensor *roi = call.in(1); !roi || !(roi->shape() == Shape{expected}))
      fail(QTN_ESHAPE, "Resize: roi must have ", expected, " values, it is ", roi ? to_string(roi->shape()) : "absent");
  }
  if (!is_nearest(attrs)) require_number("Resize", "x", *call.in(0));
  return {{call.in(0)->dtype(), plan_of(call).shape}};
}

/// What is cut out of each axis of the input before it is resized, from 0 to 1.
struct Region {
  std::array<double, kMaxRank> start{}, end;
  explicit Region(const Call &call) {
    end.fill(1);
    if (coordinate_mode(call.attrs) != "tf_crop_and_resize") return;
    const Tensor roi = require_constant("Resize", "roi", *call.in(1));
    const std::vector<std::size_t> axes = axes_of(call);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      start[axes[i]] = item(roi.select(0, static_cast<std::int64_t>(i)));
      end[axes[i]] = item(roi.select(0, static_cast<std::int64_t>(i + axes.size())));
    }
  }
};

/// One axis: from the input's positions to the output's.
struct Line {
  std::string mode;
  double scale;
  std::int64_t in, out;
  double start, end;  ///< of the region

  /// Where output position i lies on the input's axis. NaN: outside, and extrapolated.
  double coordinate(std::int64_t i) const {
    const auto at = static_cast<double>(i), length = static_cast<double>(in);
    if (mode == "asymmetric") return at / scale;
    if (mode == "align_corners") return out == 1 ? 0 : at * (length - 1) / static_cast<double>(out - 1);
    if (mode == "tf_crop_and_resize") {
      const double width = (end - start) * (length - 1);
      const double place = start * (length - 1) + (out == 1 ? width / 2 : at * width / static_cast<double>(out - 1));
      return place >= 0 && place <= length - 1 ? place : std::numeric_limits<double>::quiet_NaN();
    }
    if (mode == "tf_half_pixel_for_nn") return (at + 0.5) / scale;
    if (mode == "pytorch_half_pixel" && out == 1) return 0;
    const double half = (at + 0.5) / scale - 0.5;
    if (mode != "half_pixel_symmetric") return half;
    const double adjustment = static_cast<double>(out) / (scale * length);
    return length / 2 * (1 - adjustment) + half;
  }
};

double round_nearest(const std::string &mode, double v) {
  if (mode == "floor") return std::floor(v);
  if (mode == "ceil") return std::ceil(v);
  return mode == "round_prefer_ceil" ? std::floor(v + 0.5) : std::ceil(v - 0.5);
}

std::vector<std::int64_t> nearest_sources(const Line &line, const std::string &rounding) {
  std::vector<std::int64_t> sources;
  for (std::int64_t i = 0; i < line.out; ++i) {
    const double at = round_nearest(rounding, line.coordinate(i));
    sources.push_back(at != at ? -1 : static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(line.in - 1))));
  }
  return sources;
}

/// An axis that changes: every output is a sum of `count` weighted inputs, or extrapolated.
struct Axis {
  std::size_t index;
  std::size_t count;
  bool blends;                        ///< the weights are 1 - w and w, of which w is rounded
  std::vector<std::int64_t> sources;  ///< [output][tap]; the first is -1: extrapolated
  std::vector<double> weights;

  template <class T>
  T weight(std::size_t tap) const {
    return blends && tap % 2 == 0 ? 1 - static_cast<T>(weights[tap + 1]) : static_cast<T>(weights[tap]);
  }
  std::int64_t outputs() const { return static_cast<std::int64_t>(sources.size() / count); }
};

Axis weighted_axis(const Attrs &attrs, std::size_t index, const Line &line) {
  const bool cubic = attrs.get_string("mode", "") == "cubic", excludes = attrs.get_int("exclude_outside", 0) != 0;
  const double a = attrs.get_float("cubic_coeff_a", -0.75);
  // To make an image smaller without aliasing, weights reach as far as pixels of the result are wide.
  const bool widens = attrs.get_int("antialias", 0) != 0 && line.scale < 1;
  const double narrow = widens ? line.scale : 1;
  const auto first = static_cast<std::int64_t>(std::floor((cubic ? -2 : -1) / narrow)) + 1;
  Axis axis{index, static_cast<std::size_t>(2 - 2 * first), first == 0 && !excludes, {}, {}};
  std::vector<double> weights(axis.count);
  for (std::int64_t i = 0; i < line.out; ++i) {
    const double at = line.coordinate(i), left = std::floor(at), rest = at - left;
    double sum = 0;
    for (std::size_t k = 0; k < axis.count; ++k) {
      const double distance = (static_cast<double>(first) + static_cast<double>(k) - rest) * narrow;
      const double place = left + static_cast<double>(first) + static_cast<double>(k),
                   last = static_cast<double>(line.in - 1);
      weights[k] = cubic ? cubic_weight(distance, a) : std::max(0.0, 1 - std::abs(distance));
      if (excludes && !(place >= 0 && place <= last)) weights[k] = 0;
      sum += weights[k];
      axis.sources.push_back(at != at ? -1 : static_cast<std::int64_t>(std::clamp(place, 0.0, last)));
    }
    if (!widens && !excludes) sum = 1;
    for (const double weight : weights) axis.weights.push_back(sum == 0 ? 0 : weight / sum);
  }
  return axis;
}

/// Where elements come from: by nearest neighbours, or along each axis that changes by weighted sums.
struct Resizing final : Prepared {
  explicit Resizing(const Call &call)
      : plan(plan_of(call)),
        nearest(is_nearest(call.attrs)),
        extrapolation(static_cast<float>(call.attrs.get_float("extrapolation_value", 0))) {
    const Shape &x = call.in(0)->shape();
    const Region region(call);
    for (std::size_t axis = 0; axis < x.size(); ++axis) {
      const Line line{coordinate_mode(call.attrs), plan.scale[axis], x[axis], plan.shape[axis],
                      region.start[axis],          region.end[axis]};
      if (nearest)
        sources.push_back(nearest_sources(line, nearest_mode(call.attrs)));
      else if (line.scale != 1 || line.in != line.out || line.start != 0 || line.end != 1)
        axes.push_back(weighted_axis(call.attrs, axis, line));
    }
    // The last one comes first: that which leaves the least to the others.
    const auto growth = [&](const Axis &axis) {
      return static_cast<double>(axis.outputs()) / static_cast<double>(std::max<std::int64_t>(x[axis.index], 1));
    };
    axes = stably_sorted(std::move(axes), [&](const Axis &a, const Axis &b) { return growth(a) > growth(b); });
  }

  const Plan plan;
  const bool nearest;
  const float extrapolation;
  AxisSources sources;
  std::vector<Axis> axes;  ///< that change
};

/// From `from` of `shape` to `to` of `target` by step(axis, shape, from, to) for one of the axes at a time, through one
/// half of the memory and the other.
template <class T, class Axes, class Step>
void along_axes(const Axes &axes, Shape shape, const Shape &target, const T *from, T *to, Scratch &scratch,
                Step &&step) {
  Shape at = shape;
  std::int64_t half = 0;
  for (const Axis &axis : axes) {
    at[axis.index] = target[axis.index];
    half = std::max(half, element_count(at));
  }
  auto *memory = reinterpret_cast<T *>(scratch.take((Size(half) * 2 * sizeof(T)).value()));
  auto left = axes.size();
  for (const Axis &axis : axes) {
    T *next = --left == 0 ? to : from == memory ? memory + half : memory;
    step(axis, shape, from, next);
    shape[axis.index] = target[axis.index];
    from = next;
  }
}

/// Elements that follow one another, each of which comes from two.
template <class T>
void resize_line(const Axis &axis, T extrapolation, const T *x, T *y) {
  const std::int64_t *sources = axis.sources.data();
  const double *weights = axis.weights.data();
  for (std::int64_t i = 0; i < axis.outputs(); ++i, sources += 2, weights += 2) {
    const T b = static_cast<T>(weights[1]), a = axis.blends ? 1 - b : static_cast<T>(weights[0]);
    y[i] = sources[0] < 0 ? extrapolation : x[sources[0]] * a + x[sources[1]] * b;
  }
}

template <class T>
void resize_axis(const Axis &axis, T extrapolation, const Shape &x, const T *from, T *to) {
  const std::int64_t in = x[axis.index], inner = element_count(x, axis.index + 1, x.size());
  parallel_for(static_cast<std::size_t>(element_count(x, 0, axis.index)), [&](std::size_t outer) {
    const T *plane = from + static_cast<std::int64_t>(outer) * in * inner;
    T *y = to + static_cast<std::int64_t>(outer) * axis.outputs() * inner;
    if (inner == 1 && axis.count == 2) return resize_line(axis, extrapolation, plane, y);
    for (std::size_t first = 0; first < axis.sources.size(); first += axis.count, y += inner) {
      if (axis.sources[first] < 0) {
        std::fill_n(y, inner, extrapolation);
        continue;
      }
      const T *left = plane + axis.sources[first] * inner, *right = plane + axis.sources[first + 1] * inner;
      const T a = axis.weight<T>(first), b = axis.weight<T>(first + 1);
      for (std::int64_t i = 0; i < inner; ++i) y[i] = left[i] * a + right[i] * b;
      for (std::size_t k = first + 2; k < first + axis.count; ++k) {
        const T *row = plane + axis.sources[k] * inner;
        const T weight = axis.weight<T>(k);
        for (std::int64_t i = 0; i < inner; ++i) y[i] += row[i] * weight;
      }
    }
  });
}

/// The axes from the last to the first. Clang 14 cannot compile std::views::reverse.
struct LastFirst {
  const std::vector<Axis> &axes;
  auto begin() const { return axes.rbegin(); }
  auto end() const { return axes.rend(); }
  auto size() const { return axes.size(); }
};

template <class T>
void resize(const Resizing &resizing, const Tensor &x, const Tensor &y, Scratch &scratch) {
  along_axes(LastFirst{resizing.axes}, x.shape(), y.shape(), x.as<const T>(), y.as<T>(), scratch,
             [&](const Axis &axis, const Shape &shape, const T *from, T *to) {
               resize_axis(axis, static_cast<T>(resizing.extrapolation), shape, from, to);
             });
}

/// Integers through doubles, rounded to even.
void resize_integers(const Resizing &resizing, const Tensor &x, const Tensor &y, Scratch &scratch) {
  const Tensor wide_x(QTN_FLOAT64, x.shape()), wide_y(QTN_FLOAT64, y.shape());
  cast_elements(x, wide_x, true);
  resize<double>(resizing, wide_x, wide_y, scratch);
  map_elements<double>(wide_y, wide_y, [](double v) { return std::nearbyint(v); });
  cast_elements(wide_y, y, true);
}

void run_nearest(const Resizing &resizing, const Tensor &x, const Tensor &y) {
  // Nothing is allocated where nothing is extrapolated: training runs this in each step.
  Tensor real;
  if (resizing.extrapolation != 0) real = Tensor::scalar(resizing.extrapolation);
  const std::uint64_t fill = fill_bits(x, real.has_data() ? &real : nullptr);
  gather_axes(y, x, resizing.sources, &fill);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Ready<Resizing> resizing(call);
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (resizing->nearest) return run_nearest(*resizing, x, y);
  if (resizing->axes.empty()) return copy_elements(y, x);
  Scratch own, &scratch = call.scratch ? *call.scratch : own;
  if (x.dtype() == QTN_FLOAT32) return resize<float>(*resizing, x, y, scratch);
  x.dtype() == QTN_FLOAT64 ? resize<double>(*resizing, x, y, scratch) : resize_integers(*resizing, x, y, scratch);
}

/// `dy` is the shape of `from`, `in` the length of the axis in x.
void resize_axis_back(const Axis &axis, std::int64_t in, const Shape &dy, const float *from, float *to) {
  const std::int64_t out = dy[axis.index], inner = element_count(dy, axis.index + 1, dy.size());
  parallel_for(static_cast<std::size_t>(element_count(dy, 0, axis.index)), [&](std::size_t outer) {
    const float *slope = from + static_cast<std::int64_t>(outer) * out * inner;
    float *plane = to + static_cast<std::int64_t>(outer) * in * inner;
    std::fill_n(plane, in * inner, 0.0f);
    for (std::size_t first = 0; first < axis.sources.size(); first += axis.count, slope += inner)
      for (std::size_t k = first; k < first + axis.count && axis.sources[first] >= 0; ++k) {
        float *row = plane + axis.sources[k] * inner;
        const float weight = axis.weight<float>(k);
        for (std::int64_t i = 0; i < inner; ++i) row[i] += slope[i] * weight;
      }
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (!dx[0].has_data()) return;
  const Ready<Resizing> resizing(run.call);
  const Tensor &dy = run.dy[0];
  if (resizing->nearest) return scatter_axes(dx[0], dy, resizing->sources);
  if (resizing->axes.empty()) return copy_elements(dx[0], dy);
  const Shape &x = dx[0].shape();
  along_axes(resizing->axes, dy.shape(), x, dy.as<const float>(), dx[0].as<float>(), run.scratch,
             [&](const Axis &axis, const Shape &shape, const float *from, float *to) {
               resize_axis_back(axis, x[axis.index], shape, from, to);
             });
}

void upgrade(OldNode &node) {
  if (node.opset >= 11) return;
  if (node.input_count != 2)
    fail(QTN_EINVAL, "Resize: ", node.input_count, " inputs given, 2 expected before opset 11");
  node.inputs = {0, -1, 1};
  node.attrs.set("coordinate_transformation_mode", std::string("asymmetric"));
  if (is_nearest(node.attrs)) node.attrs.set(kRoundsByScale, std::int64_t{1});
}

}  // namespace

const OpDef kResize{.name = "Resize",
                    .min_inputs = 1,
                    .max_inputs = 4,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .prepare = prepare<Resizing>,
                    .moves = is_nearest,
                    .backward = backward,
                    .shapes_from = {2, 2},
                    .upgrade = upgrade};

}  // namespace qtn::ops
