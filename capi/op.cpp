// SPDX-License-Identifier: Apache-2.0
#include "ops/op.hpp"

#include "call.hpp"
#include "guard.hpp"
#include "onnx/onnx.hpp"
#include "ops/eager.hpp"
#include "train/fake_quantize.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

void give(qtensor **out, const char *op, const std::vector<const Tensor *> &inputs,
          const qquantizer *quantizer = nullptr, const qattrs *attrs = nullptr) {
  *out = new qtensor(ops::run_eager(op, inputs, attrs_or_none(attrs), quantizer_or_none(quantizer)));
}

void need_rank4(const char *entry, const Tensor &x) {
  if (x.rank() != 4) fail(QTN_ESHAPE, entry, ": x is ", to_string(x.shape()), ", not of rank 4");
}

}  // namespace

qstatus qop_run(qtensor **outputs, size_t output_count, const char *op, const qtensor *const *inputs,
                size_t input_count, const qattrs *attrs) {
  clear_outputs(outputs, output_count);
  return guard(__func__, [&](const char *entry) {
    need(entry, outputs, "outputs");
    need(entry, op, "op");
    const std::vector<const Tensor *> operands = tensors(entry, inputs, input_count, true);
    std::vector<Tensor> results = ops::run_eager(op, operands, output_count, attrs_or_none(attrs));
    hand_out(outputs, results);
  });
}

qstatus qop_relu(qtensor **out, const qtensor *x) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    give(out, "Relu", {&x->value});
  });
}

qstatus qop_fake_quantize(qtensor **out, const qtensor *x, const qquantizer *quantizer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    need(entry, quantizer, "quantizer");
    *out = new qtensor(train::fake_quantize(x->value, quantizer_or_none(quantizer)));
  });
}

qstatus qop_fake_quantize_backward(qtensor **out, const qtensor *dy, const qtensor *x, const qquantizer *quantizer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, dy, "dy");
    need(entry, x, "x");
    need(entry, quantizer, "quantizer");
    *out = new qtensor(train::fake_quantize_backward(dy->value, x->value, quantizer_or_none(quantizer)));
  });
}

qstatus qop_add(qtensor **out, const qtensor *a, const qtensor *b, const qquantizer *out_quantizer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, a, "a");
    need(entry, b, "b");
    give(out, "Add", {&a->value, &b->value}, out_quantizer);
  });
}

qstatus qop_matmul(qtensor **out, const qtensor *a, const qtensor *b, const qquantizer *out_quantizer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, a, "a");
    need(entry, b, "b");
    give(out, "MatMul", {&a->value, &b->value}, out_quantizer);
  });
}

qstatus qop_cat(qtensor **out, const qtensor *const *inputs, size_t input_count, int32_t axis,
                const qquantizer *out_quantizer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    qattrs attrs;
    attrs.value.set("axis", std::int64_t{axis});
    give(out, "Concat", tensors(entry, inputs, input_count), out_quantizer, &attrs);
  });
}

qstatus qop_max_pool2d(qtensor **out, const qtensor *x, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    need_rank4(entry, x->value);
    give(out, "MaxPool", {&x->value}, nullptr, attrs);
  });
}

qstatus qop_avg_pool2d(qtensor **out, const qtensor *x, const qquantizer *out_quantizer, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    need_rank4(entry, x->value);
    give(out, "AveragePool", {&x->value}, out_quantizer, attrs);
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
        ops::linear(x->value, weight->value, value_or_null(bias, "bias"), quantizer_or_none(out_quantizer)));
  });
}

qstatus qop_conv2d(qtensor **out, const qtensor *x, const qtensor *weight, const qtensor *bias,
                   const qquantizer *out_quantizer, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    need(entry, weight, "weight");
    *out = new qtensor(ops::conv2d(x->value, weight->value, value_or_null(bias, "bias"),
                                   quantizer_or_none(out_quantizer), attrs_or_none(attrs)));
  });
}

qstatus qop_register(const char *domain, const char *name, int64_t since_version, qop_call_cb infer, qop_call_cb run,
                     qop_call_cb run_quantized, qop_destroy_cb destroy, void *ctx) {
  return guard(__func__, [&](const char *entry) {
    need(entry, domain, "domain");
    need(entry, name, "name");
    if (!infer) fail(QTN_EINVAL, entry, ": infer is NULL");
    if (!run) fail(QTN_EINVAL, entry, ": run is NULL");
    const auto op =
        std::make_shared<CallbackOp>(domain, name, since_version, OpCallbacks{infer, run, run_quantized, destroy, ctx});
    if (onnx::is_reserved(domain, name))
      fail(QTN_EINVAL, entry, ": ", op->name, " is an operator that the library has");
    ops::register_op(op);
    op->own();
  });
}

qstatus qop_unregister(const char *domain, const char *name, int64_t since_version) {
  return guard(__func__, [&](const char *entry) {
    need(entry, domain, "domain");
    need(entry, name, "name");
    ops::unregister_op(domain, name, since_version);
  });
}
