// SPDX-License-Identifier: Apache-2.0
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "QLinearConv";
constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString}, {"dilations", AttrSpec::kInts},
                               {"group", AttrSpec::kInt},       {"kernel_shape", AttrSpec::kInts},
                               {"pads", AttrSpec::kInts},       {"strides", AttrSpec::kInts}};

// Inputs x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B.
Grid x_grid(const Call &call) { return {kName, "x", call.in(0)->dtype(), call.in(1), call.in(2)}; }
Grid w_grid(const Call &call) {
  const Tensor &w = *call.in(3);
  return {kName, "w", w.dtype(), call.in(4), call.in(5), w.rank() ? w.dim(0) : 1, 0};
}
Grid y_grid(const Call &call) { return {kName, "y", call.in(7)->dtype(), call.in(6), call.in(7)}; }

Types infer(const Call &call) {
  require_8bit(kName, "x", *call.in(0));
  require_8bit(kName, "w", *call.in(3));
  require_8bit(kName, "y_zero_point", *call.in(7));
  for (const Grid &grid : {x_grid(call), w_grid(call), y_grid(call)}) check_grid(grid);
  if (call.in(8)) require_dtype(kName, "B", *call.in(8), {QTN_INT32});
  return {{call.in(7)->dtype(), real_shape(kConv, call.attrs, {call.in(0), call.in(3), call.in(8)})}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor x = call.in(0)->with_quantizer(quantizer_of(x_grid(call)));
  const Tensor w = call.in(3)->with_quantizer(quantizer_of(w_grid(call)));
  const QuantizerPtr y = quantizer_of(y_grid(call));
  if (!call.in(8)) return run_on_grids(kConv, call.attrs, {&x, &w}, y, outputs[0]);
  const Tensor bias = accumulator_units(*call.in(8), *x.quantizer(), *w.quantizer());
  run_on_grids(kConv, call.attrs, {&x, &w, &bias}, y, outputs[0]);
}

}  // namespace

const OpDef kQLinearConv{.name = kName,
                         .min_inputs = 8,
                         .max_inputs = 9,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .infer = infer,
                         .run = run,
                         .work = work_of_convolution};

}  // namespace qtn::ops
