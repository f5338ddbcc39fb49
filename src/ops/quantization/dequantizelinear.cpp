// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"
#include "ops/common/linear_grid.hpp"
#include "ops/common/positive_scales.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "DequantizeLinear";

constexpr AttrSpec kAttrs[] = {
    {"axis", AttrSpec::kInt}, {"block_size", AttrSpec::kInt}, {"output_dtype", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), *zero = call.in(2);
  if (!is_quantizable(x.dtype())) fail(QTN_EDTYPE, kName, ": x is ", dtype_name(x.dtype()), ", no type of integers");
  if (zero) require_dtype(kName, "zero point", *zero, {x.dtype()});
  check_linear_grid(kName, call);
  const std::int64_t code = call.attrs.get_int("output_dtype", 0);
  const qdtype real = code == 0 ? call.in(1)->dtype() : static_cast<qdtype>(code > 0 && code < 64 ? code : 0);
  if (real != QTN_FLOAT32 && real != QTN_FLOAT16 && real != QTN_BFLOAT16)
    fail(QTN_EUNSUPPORTED, kName, ": ", code == 0 ? "without output_dtype, results of type " : "output_dtype ",
         code == 0 ? dtype_name(real) : cat(code), " are not supported");
  return {{real, x.shape()}};
}

// int32 holds sums of products, whose grid has its zero at 0.
void check_int32_zero(const Tensor &zero) {
  for (const std::int64_t z : int_values(zero, "zero point"))
    if (z != 0) fail(QTN_EINVAL, kName, ": the zero point of int32 is ", z, ", it must be 0");
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), *zero = call.in(2);
  if (x.dtype() == QTN_INT32 && zero) check_int32_zero(*zero);
  const Tensor y = on_linear_grid(kName, call.attrs, x, *call.in(1), zero, Numerics::onnx);
  copy_elements(outputs[0], from_plain(reals_of(y), outputs[0].dtype()));
}

}  // namespace

const OpDef kDequantizeLinear{.name = kName,
                              .min_inputs = 2,
                              .max_inputs = 3,
                              .max_outputs = 1,
                              .attrs = kAttrs,
                              .any_type = true,
                              .infer = infer,
                              .run = run,
                              .coding = Coding::to_reals};

}  // namespace qtn::ops
