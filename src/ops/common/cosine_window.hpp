// SPDX-License-Identifier: Apache-2.0
// Windows that are sums of cosines: HannWindow, HammingWindow, BlackmanWindow.
#pragma once

#include <cmath>
#include <numbers>

#include "ops/common/generator.hpp"

namespace qtn::ops {

inline constexpr AttrSpec kWindowAttrs[] = {{"output_datatype", AttrSpec::kInt}, {"periodic", AttrSpec::kInt}};

inline Types infer_window(const char *op, const Call &call) {
  const std::int64_t size = constant_int(op, "size", *call.in(0));
  if (size < 0) fail(QTN_EINVAL, op, ": size is ", size);
  return {{dtype_attribute(op, call.attrs, "output_datatype", QTN_FLOAT32), {size}}};
}

/// a - b cos(angle) + c cos(2 angle); a symmetric window of one element is 1, of which ONNX says 0 / 0.
inline void run_window(const Call &call, const Tensor &y, double a, double b, double c) {
  const std::int64_t last = y.count() - (call.attrs.get_int("periodic", 1) == 0 ? 1 : 0);
  generate(y, [=](std::int64_t i) {
    if (last == 0) return 1.0;
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(last);
    return a - b * std::cos(angle) + c * std::cos(2 * angle);
  });
}

inline qdtype window_dtype(const Attrs &attrs, std::size_t, qdtype) {
  return static_cast<qdtype>(attrs.get_int("output_datatype", QTN_FLOAT32));
}

}  // namespace qtn::ops
