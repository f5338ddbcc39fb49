// SPDX-License-Identifier: Apache-2.0
#include "ops/mean.hpp"
#include "ops/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"keepdims", AttrSpec::kInt}, {"noop_with_empty_axes", AttrSpec::kInt}};

AxisSet axes_of(const Call &call) {
  const std::size_t rank = call.in(0)->rank();
  AxisSet axes{};
  bool any = false;
  if (call.in(1))
    for (const std::size_t axis : constant_axes("ReduceMean", *call.in(1), rank)) any = axes[axis] = true;
  const bool all = !any && call.attrs.get_int("noop_with_empty_axes", 0) == 0;
  if (all) std::fill_n(axes.begin(), rank, true);
  return axes;
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_float("ReduceMean", "x", &x);
  const AxisSet axes = axes_of(call);
  const bool keep = call.attrs.get_int("keepdims", 1) != 0;
  Shape shape;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (!axes[i] || keep) shape.push_back(axes[i] ? 1 : x.dim(i));
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  mean_floats(*call.in(0), axes_of(call), outputs[0].as<float>());
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  return mean_quantized(*call.in(0), axes_of(call), output, clamp);
}

void upgrade(OldNode &node) {
  if (node.opset < 18) ints_to_input(node, "axes", 1);
}

}  // namespace

const OpDef kReduceMean{.name = "ReduceMean",
                        .min_inputs = 1,
                        .max_inputs = 2,
                        .max_outputs = 1,
                        .attrs = kAttrs,
                        .infer = infer,
                        .run = run,
                        .run_quantized = run_quantized,
                        .upgrade = upgrade};

}  // namespace qtn::ops
