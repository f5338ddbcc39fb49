// SPDX-License-Identifier: Apache-2.0
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "QGemm";
constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}, {"transA", AttrSpec::kInt}, {"transB", AttrSpec::kInt}};

// Inputs A, a_scale, a_zero_point, B, b_scale, b_zero_point, C, y_scale, y_zero_point. Without the last two the result
// is float32.
Grid a_grid(const Call &call) { return {kName, "a", call.in(0)->dtype(), call.in(1), call.in(2)}; }
Grid b_grid(const Call &call) {
  const Tensor &b = *call.in(3);
  const std::size_t axis = call.attrs.get_int("transB", 0) != 0 ? 0 : 1;
  return {kName, "b", b.dtype(), call.in(4), call.in(5), axis < b.rank() ? b.dim(axis) : 1, axis};
}
Grid y_grid(const Call &call) { return {kName, "y", call.in(8)->dtype(), call.in(7), call.in(8)}; }

/// C counts products of A and B before alpha, so alpha is part of A's scale.
QuantizerPtr a_quantizer(const Call &call) {
  const QuantizerPtr q = quantizer_of(a_grid(call));
  const float scale = static_cast<float>(call.attrs.get_float("alpha", 1)) * q->scale();
  return std::make_shared<Quantizer>(q->dtype(), q->scheme(), 0, std::vector<double>{scale}, q->zero_points(),
                                     q->numerics());
}

Attrs gemm_attrs(const Call &call) {
  Attrs attrs = call.attrs;
  attrs.erase("alpha");
  return attrs;
}

void check_c(const Call &call, const Shape &y) {
  const Tensor *c = call.in(6);
  if (!c) return;
  require_dtype(kName, "C", *c, {QTN_INT32});
  if (c->count() != 1 && !(c->count() == y[1] && c->shape().back() == y[1]))
    fail(QTN_EUNSUPPORTED, kName, ": C is ", to_string(c->shape()), ", not one number or one for each of ", y[1],
         " columns");
}

Types infer(const Call &call) {
  require_8bit(kName, "A", *call.in(0));
  require_8bit(kName, "B", *call.in(3));
  check_grid(a_grid(call));
  check_grid(b_grid(call));
  if (const double alpha = call.attrs.get_float("alpha", 1); !(alpha > 0))
    fail(QTN_EUNSUPPORTED, kName, ": alpha is ", alpha, ", not positive");
  const Shape shape = real_shape(kGemm, gemm_attrs(call), {call.in(0), call.in(3), call.in(6)});
  check_c(call, shape);
  if ((call.in(7) == nullptr) != (call.in(8) == nullptr))
    fail(QTN_EINVAL, kName, ": y_scale and y_zero_point must be given both or not at all");
  if (!call.in(8)) return {{QTN_FLOAT32, shape}};
  require_8bit(kName, "y_zero_point", *call.in(8));
  check_grid(y_grid(call));
  return {{call.in(8)->dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor a = call.in(0)->with_quantizer(a_quantizer(call));
  const Tensor b = call.in(3)->with_quantizer(quantizer_of(b_grid(call)));
  const QuantizerPtr y = call.in(8) ? quantizer_of(y_grid(call)) : nullptr;
  if (!call.in(6)) return run_on_grids(kGemm, gemm_attrs(call), {&a, &b}, y, outputs[0]);
  const Tensor c = accumulator_units(*call.in(6), *a.quantizer(), *b.quantizer());
  run_on_grids(kGemm, gemm_attrs(call), {&a, &b, &c}, y, outputs[0]);
}

}  // namespace

const OpDef kQGemm{.name = kName,
                   .domain = kMicrosoft,
                   .min_inputs = 6,
                   .max_inputs = 9,
                   .max_outputs = 1,
                   .attrs = kAttrs,
                   .infer = infer,
                   .run = run,
                   .work = work_of_product};

}  // namespace qtn::ops
