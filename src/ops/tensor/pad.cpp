// SPDX-License-Identifier: Apache-2.0
#include "ops/common/axis_gather.hpp"
#include "ops/common/fill.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/prepared.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"mode", AttrSpec::kString}};

struct Pads {
  std::array<std::int64_t, kMaxRank> begin{}, end{};  ///< negative: that many elements are cut off
  Shape shape;
};

Pads pads_of(const Call &call) {
  const Tensor &x = *call.in(0);
  std::vector<std::size_t> axes;
  if (call.in(3)) axes = constant_axes("Pad", *call.in(3), x.rank());
  for (std::size_t i = 0; !call.in(3) && i < x.rank(); ++i) axes.push_back(i);
  const std::vector<std::int64_t> values = constant_ints("Pad", "pads", *call.in(1));
  if (values.size() != 2 * axes.size())
    fail(QTN_EINVAL, "Pad: pads has ", values.size(), " values for ", axes.size(), " axes");
  const std::string mode = call.attrs.get_string("mode", "constant");
  Pads p;
  p.shape = x.shape();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t dim = x.dim(axes[i]), begin = values[i], end = values[i + axes.size()];
    p.begin[axes[i]] = begin;
    p.end[axes[i]] = end;
    const std::int64_t out = add_dims("Pad", add_dims("Pad", dim, begin), end);
    const std::int64_t kept =
        add_dims("Pad", add_dims("Pad", dim, std::min<std::int64_t>(begin, 0)), std::min<std::int64_t>(end, 0));
    if (out < 0 || kept < 0)
      fail(QTN_ESHAPE, "Pad: pads of ", begin, " and ", end, " leave nothing of a dimension of ", dim);
    if (mode != "constant" && kept == 0 && out > 0) fail(QTN_ESHAPE, "Pad: mode \"", mode, "\" has nothing to repeat");
    p.shape[axes[i]] = out;
  }
  return p;
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::string mode = call.attrs.get_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    fail(QTN_EINVAL, "Pad: mode is \"", mode, "\", not constant, reflect, edge or wrap");
  if (const Tensor *value = call.in(2); value && value->count() != 1)
    fail(QTN_ESHAPE, "Pad: constant_value must be one number, it is ", to_string(value->shape()));
  return {{x.dtype(), pads_of(call).shape}};
}

/// Index in [0, size) that position i outside of it stands for; -1 for the constant.
std::int64_t source_of(const std::string &mode, std::int64_t i, std::int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return i < 0 ? 0 : size - 1;
  const std::int64_t period = mode == "wrap" ? size : std::max<std::int64_t>(1, 2 * (size - 1));
  const std::int64_t at = (i % period + period) % period;
  return at < size ? at : period - at;
}

AxisSources sources_of(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::string mode = call.attrs.get_string("mode", "constant");
  const Pads p = pads_of(call);
  AxisSources sources(x.rank());
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    // Negative pads cut first; the rest is padded from what was kept.
    const std::int64_t cut = std::max<std::int64_t>(-p.begin[axis], 0);
    const std::int64_t kept = x.dim(axis) - cut - std::max<std::int64_t>(-p.end[axis], 0);
    const std::int64_t before = std::max<std::int64_t>(p.begin[axis], 0);
    for (std::int64_t i = 0; i < p.shape[axis]; ++i) {
      const std::int64_t at = source_of(mode, i - before, kept);
      sources[axis].push_back(at < 0 ? -1 : at + cut);
    }
  }
  return sources;
}

struct Sources final : Prepared {
  explicit Sources(const Call &call) : of_axes(sources_of(call)) {}
  const AxisSources of_axes;
};

void run(const Call &call, std::span<Tensor> outputs) {
  const std::uint64_t fill = fill_bits(*call.in(0), call.in(2));
  gather_axes(outputs[0], *call.in(0), Ready<Sources>(call)->of_axes, &fill);
}

void upgrade(OldNode &node) {
  if (node.opset >= 11) return;
  ints_to_input(node, "paddings", 1);  // of opset 1
  ints_to_input(node, "pads", 1);
  if (node.attrs.has("value")) {
    node.constants[2] = Tensor::scalar(static_cast<float>(node.attrs.get_float("value", 0)));
    node.attrs.erase("value");
  }
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (run.call.in(2)) refuse_gradient("Pad", "constant_value", dx[2]);
  if (dx[0].has_data()) scatter_axes(dx[0], run.dy[0], Ready<Sources>(run.call)->of_axes);
}

}  // namespace

const OpDef kPad{.name = "Pad",
                 .min_inputs = 2,
                 .max_inputs = 4,
                 .max_outputs = 1,
                 .attrs = kAttrs,
                 .infer = infer,
                 .run = run,
                 .prepare = prepare<Sources>,
                 .moves = always_moves,
                 .backward = backward,
                 .fill = 2,
                 .shapes_from = {1, 3},
                 .upgrade = upgrade};

}  // namespace qtn::ops
