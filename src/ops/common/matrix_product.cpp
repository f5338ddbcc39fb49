// SPDX-License-Identifier: Apache-2.0
#include "ops/common/matrix_product.hpp"

namespace qtn::ops {

MatrixProduct matrix_product(const char *who, const Call &call) {
  const Shape &a = call.in(0)->shape(), &b = call.in(1)->shape();
  if (a.empty() || b.empty()) fail(QTN_ESHAPE, who, ": a ", to_string(a), " and b ", to_string(b), " must have axes");
  const auto leading = [](const Shape &s) { return Shape(std::span(s.data(), s.size() < 2 ? 0 : s.size() - 2)); };
  MatrixProduct p{
      a.size() < 2 ? 1 : a[a.size() - 2], b.size() < 2 ? 1 : b.back(), a.back(), leading(a), leading(b), {}, {}};
  const std::int64_t rows = b.size() < 2 ? b[0] : b[b.size() - 2];
  if (rows != p.k)
    fail(QTN_ESHAPE, who, ": b wants ", rows, " input features, a has ", p.k, " (a ", to_string(a), ", b ",
         to_string(b), ")");
  p.batch = broadcast(p.a_batch, p.b_batch, who);
  p.shape = p.batch;
  if (a.size() > 1) p.shape.push_back(p.m);
  if (b.size() > 1) p.shape.push_back(p.n);
  return p;
}

}  // namespace qtn::ops
