// SPDX-License-Identifier: Apache-2.0
#include "ops/common/softmax.hpp"

#include <algorithm>

#include "kernels/rows/rows.hpp"
#include "ops/common/softmax_columns.hpp"
#include "ops/common/sums.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_softmax("Softmax", call); }

/// Rows in parallel or, along an inner axis, what is before it.
void run_floats(const Call &call, const Tensor &y) {
  const SoftmaxRows rows("Softmax", call);
  const float *x = call.in(0)->as<const float>();
  const auto length = static_cast<std::size_t>(rows.length), inner = static_cast<std::size_t>(rows.inner);
  const std::size_t plane = length * inner, outer = plane == 0 ? 0 : static_cast<std::size_t>(y.count()) / plane;
  constexpr std::size_t kTask = std::size_t{1} << 13;
  const std::size_t step = std::max<std::size_t>(1, kTask / std::max<std::size_t>(1, plane));
  constexpr std::size_t kNeighbours = 8;  // so many the kernel takes together
  parallel_for((outer + step - 1) / step, [&, softmax = kernels::rows_kernel().softmax](std::size_t task) {
    const std::size_t first = task * step, count = std::min(step, outer - first);
    float *to = y.as<float>() + first * plane;
    if (inner == 1 || inner >= kNeighbours) return softmax({x + first * plane, count, length, inner, to});
    for (std::size_t o = 0; o < count; ++o)
      softmax_columns(x + (first + o) * plane, to + o * plane, length, inner, false);
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  if (outputs[0].dtype() == QTN_FLOAT32) return run_floats(call, outputs[0]);
  run_softmax("Softmax", call, outputs[0],
              [](double *to, const double *, double, double sum, std::int64_t length, std::int64_t step) {
                for (std::int64_t k = 0; k < length; ++k) to[k * step] /= sum;
              });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &dy = run.dy[0], &y = run.outputs[0];
  if (!dx[0].has_data()) return;
  for_softmax_rows("Softmax", run.call, [&](std::int64_t at, std::int64_t length, std::int64_t step) {
    const float *slope = dy.as<const float>() + at, *from = y.as<const float>() + at;
    float *to = dx[0].as<float>() + at;
    const auto mean =
        static_cast<float>(sum_of(length, [=](std::int64_t k) { return slope[k * step] * from[k * step]; }));
    for (std::int64_t k = 0; k < length; ++k) to[k * step] = from[k * step] * (slope[k * step] - mean);
  });
}

}  // namespace

const OpDef kSoftmax{.name = "Softmax",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = kSoftmaxAttrs,
                     .infer = infer,
                     .run = run,
                     .backward = backward,
                     .keeps = {.outputs = true},
                     .bounds = Clamp{0, 1},
                     .upgrade = upgrade_softmax};

}  // namespace qtn::ops
