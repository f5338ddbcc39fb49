// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"
#include "ops/common/reduced_bytes.hpp"
#include "ops/common/reduced_floats.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_number("ReduceSum", "x", *call.in(0));
  return infer_reduction("ReduceSum", call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  if (x.dtype() == QTN_FLOAT32) return sum_floats(Addends::numbers, x, ready_axes(call), 1, nullptr, outputs[0]);
  dispatch_wrapping(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
    reduce<T, T>(
        x, ready_axes(call), outputs[0], Wide(0), [](Wide a, T b) { return a + static_cast<Wide>(b); },
        [](Wide v) { return static_cast<T>(v); }, kFewForFastLoops);
  });
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  return sum_quantized(*call.in(0), ready_axes(call), 1, output, clamp);
}

// Its axes became an input five opsets before those of the other reductions.
void upgrade(OldNode &node) {
  if (node.opset < 13) ints_to_input(node, "axes", 1);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (dx[0].has_data()) copy_elements(dx[0], repeated(run.dy[0], ready_axes(run.call), dx[0].shape()));
}

}  // namespace

const OpDef kReduceSum{.name = "ReduceSum",
                       .min_inputs = 1,
                       .max_inputs = 2,
                       .max_outputs = 1,
                       .attrs = kReductionAttrs,
                       .infer = infer,
                       .run = run,
                       .prepare = prepare<ReducedAxes>,
                       .run_quantized = run_quantized,
                       .backward = backward,
                       .shapes_from = {1, 1},
                       .upgrade = upgrade};

}  // namespace qtn::ops
