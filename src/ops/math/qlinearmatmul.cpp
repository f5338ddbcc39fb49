// SPDX-License-Identifier: Apache-2.0
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "QLinearMatMul";

// Inputs a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point.
Grid a_grid(const Call &call) { return {kName, "a", call.in(0)->dtype(), call.in(1), call.in(2)}; }
Grid b_grid(const Call &call) {
  const Tensor &b = *call.in(3);
  return columns_grid({kName, "b", b.dtype(), call.in(4), call.in(5)}, b);
}
Grid y_grid(const Call &call) { return {kName, "y", call.in(7)->dtype(), call.in(6), call.in(7)}; }

Types infer(const Call &call) {
  require_8bit(kName, "a", *call.in(0));
  require_8bit(kName, "b", *call.in(3));
  require_8bit(kName, "y_zero_point", *call.in(7));
  for (const Grid &grid : {a_grid(call), b_grid(call), y_grid(call)}) check_grid(grid);
  return {{call.in(7)->dtype(), real_shape(kMatMul, call.attrs, {call.in(0), call.in(3)})}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor a = call.in(0)->with_quantizer(quantizer_of(a_grid(call)));
  const Tensor b = call.in(3)->with_quantizer(quantizer_of(b_grid(call)));
  run_on_grids(kMatMul, call.attrs, {&a, &b}, quantizer_of(y_grid(call)), outputs[0]);
}

}  // namespace

const OpDef kQLinearMatMul{.name = kName,
                           .min_inputs = 8,
                           .max_inputs = 8,
                           .max_outputs = 1,
                           .attrs = {},
                           .infer = infer,
                           .run = run,
                           .work = work_of_product};

}  // namespace qtn::ops
