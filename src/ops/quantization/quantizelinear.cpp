// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"
#include "ops/common/linear_grid.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "QuantizeLinear";

// "precision" came with opset 23; float32 is what scales of float32 mean without it.
constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt},
                               {"block_size", AttrSpec::kInt},
                               {"output_dtype", AttrSpec::kInt},
                               {"precision", AttrSpec::kInt},
                               {"saturate", AttrSpec::kInt}};

qdtype output_dtype(const Call &call) {
  const std::int64_t code = call.attrs.get_int("output_dtype", 0);
  const Tensor *zero = call.in(2);
  if (code == 0) return zero ? zero->dtype() : QTN_UINT8;
  const auto dtype = static_cast<qdtype>(code > 0 && code < 64 ? code : 0);
  if (zero && zero->dtype() != dtype)
    fail(QTN_EDTYPE, kName, ": output_dtype is ", code, " (", dtype_name(dtype), "), the zero point is ",
         dtype_name(zero->dtype()));
  return dtype;
}

Types infer(const Call &call) {
  require_dtype(kName, "x", *call.in(0), {QTN_FLOAT32, QTN_FLOAT16, QTN_BFLOAT16});
  check_linear_grid(kName, call);
  const std::int64_t precision = call.attrs.get_int("precision", 0);
  if (precision != 0 && precision != QTN_FLOAT32)
    fail(QTN_EUNSUPPORTED, kName, ": precision ", precision, " is not supported");
  const qdtype dtype = output_dtype(call);
  if (!is_quantizable(dtype) || dtype == QTN_INT32)
    fail(QTN_EUNSUPPORTED, kName, ": quantization to ", dtype_name(dtype), " is not supported");
  if (is_tiny_float(dtype) && !is_packed(dtype) && call.attrs.get_int("saturate", 1) == 0)
    fail(QTN_EUNSUPPORTED, kName, ": saturate 0 is not supported");
  return {{dtype, call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const QuantizerPtr q = linear_quantizer(kName, call, outputs[0].dtype());
  copy_elements(outputs[0], quantize(to_plain(*call.in(0)), q));
}

}  // namespace

const OpDef kQuantizeLinear{.name = kName,
                            .min_inputs = 2,
                            .max_inputs = 3,
                            .max_outputs = 1,
                            .attrs = kAttrs,
                            .any_type = true,
                            .infer = infer,
                            .run = run,
                            .coding = Coding::to_integers};

}  // namespace qtn::ops
