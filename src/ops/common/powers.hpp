// SPDX-License-Identifier: Apache-2.0
// Norms of LpPool and GlobalLpPool.
#pragma once

#include <cmath>

#include "ops/common/infer.hpp"

namespace qtn::ops {

/// The p-th root of a sum of p-th powers.
struct Norm {
  explicit Norm(const char *op, const Attrs &attrs) : p(static_cast<double>(attrs.get_int("p", 2))) {
    if (p < 1) fail(QTN_EINVAL, op, ": p is ", attrs.get_int("p", 2));
  }
  double power(double v) const {
    v = std::abs(v);
    return p == 1 ? v : p == 2 ? v * v : std::pow(v, p);
  }
  double root(double sum) const { return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p); }

  double p;
};

/// p was a real number in opset 1.
inline void upgrade_norm(OldNode &node) {
  if (node.opset >= 2 || !node.attrs.has("p")) return;
  const double p = node.attrs.get_float("p", 2);
  if (p != std::floor(p) || p > 1e6) fail(QTN_EUNSUPPORTED, node.op, ": p ", p, " is not supported");
  node.attrs.set("p", static_cast<std::int64_t>(p));
}

}  // namespace qtn::ops
