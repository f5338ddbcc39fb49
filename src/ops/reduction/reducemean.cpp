// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/mean.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_number("ReduceMean", "x", *call.in(0));
  return infer_reduction("ReduceMean", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (x.dtype() == QTN_FLOAT32) return mean_floats(x, ready_axes(call), y);
  const double count = static_cast<double>(x.count()) / static_cast<double>(y.count());
  dispatch_number(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    reduce<T, T>(
        x, ready_axes(call), y, 0.0, [](double sum, T v) { return sum + static_cast<double>(v); },
        [count](double sum) { return convert<T>(sum / count); });
  });
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  return mean_quantized(*call.in(0), ready_axes(call), output, clamp);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (dx[0].has_data()) mean_gradient(run.dy[0], ready_axes(run.call), dx[0]);
}

/// Those behind batch and channels, each of them once.
bool averages_places(std::size_t rank, const Tensor *axes) {
  if (!axes || rank < 3) return false;
  std::vector<std::int64_t> reduced = int_values(*axes, "ReduceMean: axes");
  for (std::int64_t &axis : reduced) axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
  std::sort(reduced.begin(), reduced.end());
  std::vector<std::int64_t> places(rank - 2);
  std::iota(places.begin(), places.end(), 2);
  return reduced == places;
}

}  // namespace

const OpDef kReduceMean{.name = "ReduceMean",
                        .min_inputs = 1,
                        .max_inputs = 2,
                        .max_outputs = 1,
                        .attrs = kReductionAttrs,
                        .infer = infer,
                        .run = run,
                        .prepare = prepare<ReducedAxes>,
                        .run_quantized = run_quantized,
                        .backward = backward,
                        .averages_places = averages_places,
                        .shapes_from = {1, 1},
                        .upgrade = upgrade_reduction};

}  // namespace qtn::ops
