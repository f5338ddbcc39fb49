// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "MatMulIntegerToFloat";

// Inputs a, b, a_scale, b_scale, a_zero_point, b_zero_point, bias.
Grid a_grid(const Call &call) { return {kName, "a", call.in(0)->dtype(), call.in(2), call.in(4)}; }
Grid b_grid(const Call &call) {
  const Tensor &b = *call.in(1);
  return columns_grid({kName, "b", b.dtype(), call.in(3), call.in(5)}, b);
}

Types infer(const Call &call) {
  require_8bit(kName, "a", *call.in(0));
  require_8bit(kName, "b", *call.in(1));
  check_grid(a_grid(call));
  check_grid(b_grid(call));
  const Shape shape = real_shape(kMatMul, call.attrs, {call.in(0), call.in(1)});
  check_column_bias(kName, call.in(6), *call.in(1));
  return {{QTN_FLOAT32, shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor a = call.in(0)->with_quantizer(quantizer_of(a_grid(call)));
  const Tensor b = call.in(1)->with_quantizer(quantizer_of(b_grid(call)));
  run_on_grids(kMatMul, call.attrs, {&a, &b}, nullptr, outputs[0]);
  add_column_bias(outputs[0], call.in(6));
}

}  // namespace

const OpDef kMatMulIntegerToFloat{.name = kName,
                                  .domain = kMicrosoft,
                                  .min_inputs = 4,
                                  .max_inputs = 7,
                                  .max_outputs = 1,
                                  .attrs = {},
                                  .infer = infer,
                                  .run = run,
                                  .work = work_of_product,
                                  .output_dtype = makes<QTN_FLOAT32>};

}  // namespace qtn::ops
