// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"

#include <algorithm>

namespace qtn::ops {

void require_dtype(const char *op, const char *name, const Tensor &t, std::initializer_list<qdtype> allowed) {
  if (std::find(allowed.begin(), allowed.end(), t.dtype()) != allowed.end()) return;
  std::string text;
  for (const qdtype dtype : allowed) text += std::string(text.empty() ? "" : " or ") + dtype_name(dtype);
  fail(QTN_EDTYPE, op, ": ", name, " is ", dtype_name(t.dtype()), ", not ", text);
}

void require_float(const char *op, const char *name, const Tensor *t) {
  if (t) require_dtype(op, name, *t, {QTN_FLOAT32});
}

void require_real(const char *op, const char *name, const Tensor *t) {
  if (t) require_dtype(op, name, *t, {QTN_FLOAT32, QTN_FLOAT64});
}

void require_number(const char *op, const char *name, const Tensor &t) {
  require_dtype(op, name, t,
                {QTN_FLOAT32, QTN_FLOAT64, QTN_UINT8, QTN_INT8, QTN_UINT16, QTN_INT16, QTN_INT32, QTN_INT64, QTN_UINT32,
                 QTN_UINT64});
}

void require_shape(const char *op, const char *name, const Tensor &t, const Shape &expected) {
  if (!(t.shape() == expected))
    fail(QTN_ESHAPE, op, ": ", name, " is ", to_string(t.shape()), ", not ", to_string(expected));
}

void require_same_dtype(const char *op, const Tensor &a, const Tensor &b) {
  if (a.dtype() != b.dtype())
    fail(QTN_EDTYPE, op, ": inputs are ", dtype_name(a.dtype()), " and ", dtype_name(b.dtype()), ", not of one type");
}

const Tensor &require_constant(const char *op, const char *name, const Tensor &t) {
  if (!t.has_data()) throw NotKnown(cat(op, ": input \"", name, "\" must be a constant"));
  return t;
}

std::vector<std::int64_t> constant_ints(const char *op, const char *name, const Tensor &t) {
  require_dtype(op, name, t, {QTN_INT64, QTN_INT32});
  if (t.rank() > 1) fail(QTN_ESHAPE, op, ": ", name, " must be a list, it is ", to_string(t.shape()));
  return int_values(require_constant(op, name, t), name);
}

std::vector<std::size_t> constant_axes(const char *op, const Tensor &t, std::size_t rank) {
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : constant_ints(op, "axes", t)) {
    axes.push_back(normalize_axis(axis, rank, op));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1) fail(QTN_EINVAL, op, ": axis ", axis, " is given twice");
  }
  return axes;
}

Types infer_real_unary(const char *op, const Call &call) {
  require_real(op, "x", call.in(0));
  return {{call.in(0)->dtype(), call.in(0)->shape()}};
}

Types infer_number_unary(const char *op, const Call &call) {
  require_number(op, "x", *call.in(0));
  return {{call.in(0)->dtype(), call.in(0)->shape()}};
}

std::int64_t add_dims(const char *op, std::int64_t a, std::int64_t b) {
  std::int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) fail(QTN_ESHAPE, op, ": dimensions ", a, " and ", b, " are too large");
  return sum;
}

std::int64_t mul_dims(const char *op, std::int64_t a, std::int64_t b) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) fail(QTN_ESHAPE, op, ": dimensions ", a, " times ", b, " are too large");
  return product;
}

}  // namespace qtn::ops
