// SPDX-License-Identifier: Apache-2.0
#include "ops/op.hpp"

#include "guard.hpp"
#include "ops/eager.hpp"

using namespace qtn;
using namespace qtn::capi;

qstatus qop_run(qtensor **outputs, size_t output_count, const char *op, const qtensor *const *inputs,
                size_t input_count, const qattrs *attrs) {
  clear_outputs(outputs, output_count);
  return guard(__func__, [&](const char *entry) {
    need(entry, outputs, "outputs");
    need(entry, op, "op");
    const std::vector<const Tensor *> operands = tensors(entry, inputs, input_count, true);
    hand_out(outputs, ops::run_eager(op, operands, output_count, attrs_or_none(attrs)));
  });
}

qstatus qop_linear(qtensor **out, const qtensor *x, const qtensor *weight, const qtensor *bias,
                   const qquantizer *out_quantizer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    need(entry, weight, "weight");
    *out = new qtensor(
        ops::linear(x->value, weight->value, bias ? &bias->value : nullptr, quantizer_or_none(out_quantizer)));
  });
}

qstatus qop_conv2d(qtensor **out, const qtensor *x, const qtensor *weight, const qtensor *bias,
                   const qquantizer *out_quantizer, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    need(entry, weight, "weight");
    *out = new qtensor(ops::conv2d(x->value, weight->value, bias ? &bias->value : nullptr,
                                   quantizer_or_none(out_quantizer), attrs_or_none(attrs)));
  });
}
