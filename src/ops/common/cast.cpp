// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cast.hpp"

#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

Tensor converted(const Tensor &x, qdtype dtype) {
  if (x.dtype() == dtype) return x;
  const Tensor y(dtype, x.shape());
  dispatch(x.dtype(), [&](auto from) {
    dispatch(dtype,
             [&](auto to) { map_elements<decltype(from), decltype(to)>(x, y, convert<decltype(to), decltype(from)>); });
  });
  return y;
}

}  // namespace

// Types that are only stored go through the type that computes for them.
void cast_elements(const Tensor &given, const Tensor &y, bool saturate) {
  const qdtype to = y.dtype();
  // Integers that a packed type does not have lose their high bits, as in ONNX's reference.
  const Tensor x = is_packed(to) ? converted(to_plain(given), QTN_INT64) : to_plain(given);
  copy_elements(y, from_plain(converted(x, plain_dtype(to)), to, saturate));
}

}  // namespace qtn::ops
