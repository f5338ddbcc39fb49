// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "ops/common/axis_gather.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"
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
                               {"nearest_mode", AttrSpec::kString}};

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

void one_of(const char *name, const std::string &value, std::initializer_list<const char *> supported,
            std::initializer_list<const char *> known) {
  for (const char *s : supported)
    if (value == s) return;
  for (const char *s : known)
    if (value == s) fail(QTN_EUNSUPPORTED, "Resize: ", name, " \"", value, "\" is not supported");
  fail(QTN_EINVAL, "Resize: ", name, " \"", value, "\" is unknown");
}

std::string coordinate_mode(const Attrs &attrs) {
  return attrs.get_string("coordinate_transformation_mode", "half_pixel");
}
std::string nearest_mode(const Attrs &attrs) { return attrs.get_string("nearest_mode", "round_prefer_floor"); }

bool is_nearest(const Attrs &attrs) { return attrs.get_string("mode", "nearest") == "nearest"; }

Types infer(const Call &call) {
  const Attrs &attrs = call.attrs;
  one_of("mode", attrs.get_string("mode", "nearest"), {"nearest", "linear"}, {"cubic"});
  one_of("coordinate_transformation_mode", coordinate_mode(attrs),
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"},
         {"tf_crop_and_resize"});
  one_of("nearest_mode", nearest_mode(attrs), {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, {});
  if (present(call.in(3)))
    one_of("keep_aspect_ratio_policy", attrs.get_string("keep_aspect_ratio_policy", "stretch"),
           {"stretch", "not_larger", "not_smaller"}, {});
  if (attrs.get_int("antialias", 0) != 0) fail(QTN_EUNSUPPORTED, "Resize: antialias is not supported");
  if (!is_nearest(attrs)) require_float("Resize", "x", call.in(0));
  return {{call.in(0)->dtype(), plan_of(call).shape}};
}

/// Where output position i lies on the input's axis.
double coordinate(const std::string &mode, std::int64_t i, double scale, std::int64_t in, std::int64_t out) {
  const auto at = static_cast<double>(i), length = static_cast<double>(in);
  if (mode == "asymmetric") return at / scale;
  if (mode == "align_corners") return out == 1 ? 0 : at * (length - 1) / static_cast<double>(out - 1);
  if (mode == "pytorch_half_pixel" && out == 1) return 0;
  const double half = (at + 0.5) / scale - 0.5;
  if (mode != "half_pixel_symmetric") return half;
  const double adjustment = static_cast<double>(out) / (scale * length);
  return length / 2 * (1 - adjustment) + half;
}

double round_nearest(const std::string &mode, double v) {
  if (mode == "floor") return std::floor(v);
  if (mode == "ceil") return std::ceil(v);
  return mode == "round_prefer_ceil" ? std::floor(v + 0.5) : std::ceil(v - 0.5);
}

AxisSources nearest_sources(const Call &call, const Plan &plan) {
  const Tensor &x = *call.in(0);
  AxisSources sources(x.rank());
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t in = x.dim(axis), out = plan.shape[axis];
    for (std::int64_t i = 0; i < out; ++i) {
      const double at = round_nearest(nearest_mode(call.attrs),
                                      coordinate(coordinate_mode(call.attrs), i, plan.scale[axis], in, out));
      sources[axis].push_back(static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(in - 1))));
    }
  }
  return sources;
}

struct Tap {
  std::int64_t left, right;
  float weight;  ///< of the right one
};

std::vector<Tap> linear_taps(const Call &call, std::int64_t in, std::int64_t out, double scale) {
  std::vector<Tap> taps;
  const auto last = static_cast<double>(in - 1);
  for (std::int64_t i = 0; i < out; ++i) {
    const double at = coordinate(coordinate_mode(call.attrs), i, scale, in, out), left = std::floor(at);
    taps.push_back({static_cast<std::int64_t>(std::clamp(left, 0.0, last)),
                    static_cast<std::int64_t>(std::clamp(left + 1, 0.0, last)), static_cast<float>(at - left)});
  }
  return taps;
}

/// x with one axis resized linearly.
/// Where elements come from: by nearest neighbours, or along each axis that changes by pairs of them.
struct Resizing final : Prepared {
  explicit Resizing(const Call &call) : plan(plan_of(call)), nearest(is_nearest(call.attrs)) {
    if (nearest) sources = nearest_sources(call, plan);
    const Shape &x = call.in(0)->shape();
    for (std::size_t axis = 0; axis < x.size() && !nearest; ++axis)
      if (plan.scale[axis] != 1 || x[axis] != plan.shape[axis])
        axes.push_back({axis, linear_taps(call, x[axis], plan.shape[axis], plan.scale[axis])});
  }

  struct Axis {
    std::size_t index;
    std::vector<Tap> taps;
  };
  const Plan plan;
  const bool nearest;
  AxisSources sources;
  std::vector<Axis> axes;  ///< that change
};

/// From `from` of `shape` to `to` of `target` by step(axis, shape, from, to) for one of the axes at a time, through one
/// half of the memory and the other.
template <class Axes, class Step>
void along_axes(const Axes &axes, Shape shape, const Shape &target, const float *from, float *to, Scratch &scratch,
                Step &&step) {
  Shape at = shape;
  std::int64_t half = 0;
  for (const Resizing::Axis &axis : axes) {
    at[axis.index] = target[axis.index];
    half = std::max(half, element_count(at));
  }
  float *memory = scratch_tensor(scratch, {2, half}).as<float>();
  auto left = axes.size();
  for (const Resizing::Axis &axis : axes) {
    float *next = --left == 0 ? to : from == memory ? memory + half : memory;
    step(axis, shape, from, next);
    shape[axis.index] = target[axis.index];
    from = next;
  }
}

void resize_axis(const Resizing::Axis &axis, const Shape &x, const float *from, float *to) {
  const auto out = static_cast<std::int64_t>(axis.taps.size());
  const std::int64_t in = x[axis.index], inner = element_count(x, axis.index + 1, x.size());
  parallel_for(static_cast<std::size_t>(element_count(x, 0, axis.index)), [&](std::size_t outer) {
    const float *plane = from + static_cast<std::int64_t>(outer) * in * inner;
    float *y = to + static_cast<std::int64_t>(outer) * out * inner;
    for (const Tap &tap : axis.taps) {
      const float *left = plane + tap.left * inner, *right = plane + tap.right * inner;
      for (std::int64_t i = 0; i < inner; ++i) *y++ = left[i] * (1 - tap.weight) + right[i] * tap.weight;
    }
  });
}

/// The axes from the last to the first. Clang 14 cannot compile std::views::reverse.
struct LastFirst {
  const std::vector<Resizing::Axis> &axes;
  auto begin() const { return axes.rbegin(); }
  auto end() const { return axes.rend(); }
  auto size() const { return axes.size(); }
};

void run(const Call &call, std::span<Tensor> outputs) {
  const Ready<Resizing> resizing(call);
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (resizing->nearest) return gather_axes(y, x, resizing->sources, nullptr);
  if (resizing->axes.empty()) return copy_elements(y, x);
  Scratch own;
  along_axes(LastFirst{resizing->axes}, x.shape(), y.shape(), x.as<const float>(), y.as<float>(),
             call.scratch ? *call.scratch : own, resize_axis);
}

/// `dy` is the shape of `from`, `in` the length of the axis in x.
void resize_axis_back(const Resizing::Axis &axis, std::int64_t in, const Shape &dy, const float *from, float *to) {
  const std::int64_t out = dy[axis.index], inner = element_count(dy, axis.index + 1, dy.size());
  parallel_for(static_cast<std::size_t>(element_count(dy, 0, axis.index)), [&](std::size_t outer) {
    const float *slope = from + static_cast<std::int64_t>(outer) * out * inner;
    float *plane = to + static_cast<std::int64_t>(outer) * in * inner;
    std::fill_n(plane, in * inner, 0.0f);
    for (const Tap &tap : axis.taps) {
      float *left = plane + tap.left * inner, *right = plane + tap.right * inner;
      for (std::int64_t i = 0; i < inner; ++i, ++slope) {
        left[i] += *slope * (1 - tap.weight);
        right[i] += *slope * tap.weight;
      }
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
             [&](const Resizing::Axis &axis, const Shape &shape, const float *from, float *to) {
               resize_axis_back(axis, x[axis.index], shape, from, to);
             });
}

void upgrade(OldNode &node) {
  if (node.opset >= 11) return;
  if (node.input_count != 2)
    fail(QTN_EINVAL, "Resize: ", node.input_count, " inputs given, 2 expected before opset 11");
  node.inputs = {0, -1, 1};
  node.attrs.set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attrs.set("nearest_mode", std::string("floor"));
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
