// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"
#include "ops/common/mean.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_float("GlobalAveragePool", "x", &x);
  if (x.rank() < 3) fail(QTN_ESHAPE, "GlobalAveragePool: x ", to_string(x.shape()), " has no spatial axes");
  Shape shape = x.shape();
  std::fill(shape.begin() + 2, shape.end(), 1);
  return {{x.dtype(), shape}};
}

AxisSet spatial_axes(const Call &call) {
  AxisSet axes{};
  std::fill(axes.begin() + 2, axes.begin() + static_cast<std::ptrdiff_t>(call.in(0)->rank()), true);
  return axes;
}

void run(const Call &call, std::span<Tensor> outputs) { mean_floats(*call.in(0), spatial_axes(call), outputs[0]); }

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  return mean_quantized(*call.in(0), spatial_axes(call), output, clamp);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (dx[0].has_data()) mean_gradient(run.dy[0], spatial_axes(run.call), dx[0]);
}

bool averages_places(std::size_t rank, const Tensor *) { return rank >= 3; }

}  // namespace

const OpDef kGlobalAveragePool{.name = "GlobalAveragePool",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .max_outputs = 1,
                               .attrs = {},
                               .infer = infer,
                               .run = run,
                               .run_quantized = run_quantized,
                               .backward = backward,
                               .averages_places = averages_places,
                               .homogeneous = true};

}  // namespace qtn::ops
