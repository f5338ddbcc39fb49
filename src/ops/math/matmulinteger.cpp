// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "MatMulInteger";

// Inputs a, b, a_zero_point, b_zero_point.
Grid a_grid(const Call &call) { return {kName, "a", call.in(0)->dtype(), nullptr, call.in(2)}; }
Grid b_grid(const Call &call) {
  const Tensor &b = *call.in(1);
  return columns_grid({kName, "b", b.dtype(), nullptr, call.in(3)}, b);
}

Types infer(const Call &call) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  require_8bit(kName, "a", a);
  require_8bit(kName, "b", b);
  check_grid(a_grid(call));
  check_grid(b_grid(call));
  const Shape shape = real_shape(kMatMul, call.attrs, {&a, &b});
  check_int32_sums(a_grid(call), b_grid(call), a.shape().back());
  return {{QTN_INT32, shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor a = call.in(0)->with_quantizer(quantizer_of(a_grid(call)));
  const Tensor b = call.in(1)->with_quantizer(quantizer_of(b_grid(call)));
  run_sums(kMatMul, call.attrs, {&a, &b}, outputs[0]);
}

}  // namespace

const OpDef kMatMulInteger{.name = kName,
                           .min_inputs = 2,
                           .max_inputs = 4,
                           .max_outputs = 1,
                           .attrs = {},
                           .infer = infer,
                           .run = run,
                           .work = work_of_product,
                           .output_dtype = makes<QTN_INT32>};

}  // namespace qtn::ops
