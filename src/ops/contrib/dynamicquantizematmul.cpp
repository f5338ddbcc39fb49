// SPDX-License-Identifier: Apache-2.0
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/qlinear.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "DynamicQuantizeMatMul";

// Inputs a (float32), b, b_scale, b_zero_point, bias.
Grid b_grid(const Call &call) {
  const Tensor &b = *call.in(1);
  return columns_grid({kName, "b", b.dtype(), call.in(2), call.in(3)}, b);
}

Types infer(const Call &call) {
  require_float(kName, "a", call.in(0));
  dynamic_numerics(kName, call.attrs);
  require_8bit(kName, "b", *call.in(1));
  check_grid(b_grid(call));
  const Shape shape = real_shape(kMatMul, Attrs(), {call.in(0), call.in(1)});
  check_column_bias(kName, call.in(4), *call.in(1));
  return {{QTN_FLOAT32, shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor a = quantize(*call.in(0), dynamic_quantizer(kName, *call.in(0), dynamic_numerics(kName, call.attrs)));
  const Tensor b = call.in(1)->with_quantizer(quantizer_of(b_grid(call)));
  run_on_grids(kMatMul, Attrs(), {&a, &b}, nullptr, outputs[0]);
  add_column_bias(outputs[0], call.in(4));
}

}  // namespace

const OpDef kDynamicQuantizeMatMul{.name = kName,
                                   .domain = kMicrosoft,
                                   .min_inputs = 3,
                                   .max_inputs = 5,
                                   .max_outputs = 1,
                                   .attrs = kDynamicAttrs,
                                   .infer = infer,
                                   .run = run};

}  // namespace qtn::ops
