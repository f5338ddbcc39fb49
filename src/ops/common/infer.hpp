// SPDX-License-Identifier: Apache-2.0
// Checks that many operators' shape inference shares.
#pragma once

#include <initializer_list>

#include "base/error.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

using Types = std::vector<TensorType>;

/// OpDef::output_dtype where it is always the same.
template <qdtype T>
qdtype makes(const Attrs &, std::size_t, qdtype) {
  return T;
}

void require_dtype(const char *op, const char *name, const Tensor &t, std::initializer_list<qdtype> allowed);

void require_float(const char *op, const char *name, const Tensor *t);

void require_real(const char *op, const char *name, const Tensor *t);

/// Any stored number, bool excluded.
void require_number(const char *op, const char *name, const Tensor &t);

void require_shape(const char *op, const char *name, const Tensor &t, const Shape &expected);

void require_same_dtype(const char *op, const Tensor &a, const Tensor &b);

/// An input that shapes depend on. Throws NotKnown where it is not a constant.
const Tensor &require_constant(const char *op, const char *name, const Tensor &t);

/// The values of a list of integers that shapes depend on.
std::vector<std::int64_t> constant_ints(const char *op, const char *name, const Tensor &t);

/// constant_ints of axes, each in [0, rank) and none twice.
std::vector<std::size_t> constant_axes(const char *op, const Tensor &t, std::size_t rank);

/// y has the type of x, which is float32 or float64.
Types infer_real_unary(const char *op, const Call &call);

/// y has the type of x, which is any number.
Types infer_number_unary(const char *op, const Call &call);

/// a + b that reports overflow as a shape error.
std::int64_t add_dims(const char *op, std::int64_t a, std::int64_t b);

/// a * b that reports overflow as a shape error.
std::int64_t mul_dims(const char *op, std::int64_t a, std::int64_t b);

}  // namespace qtn::ops
