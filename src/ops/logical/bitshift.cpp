// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ops/common/bits.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"direction", AttrSpec::kString}};

bool goes_left(const Call &call) {
  const std::string direction = call.attrs.get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    fail(QTN_EINVAL, "BitShift: direction is \"", direction, "\", not LEFT or RIGHT");
  return direction == "LEFT";
}

Types infer(const Call &call) {
  goes_left(call);
  return infer_bits("BitShift", call);
}

/// By a negative number of bits, or more than there are, leaves what fills the vacated ones: the sign on the right.
template <class T>
T shifted(T x, T by, bool left) {
  constexpr int kBits = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  const bool inside = std::cmp_greater_equal(by, 0) && std::cmp_less(by, kBits);
  if (left) return inside ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << by) : T(0);
  return static_cast<T>(x >> (inside ? by : static_cast<T>(kBits - 1)) >> (inside ? 0 : 1));
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  const bool left = goes_left(call);
  dispatch_number(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>)
      map_broadcast<T, T>(*call.in(0), *call.in(1), y.shape(), y.as<T>(),
                          [left](T x, T by) { return shifted(x, by, left); });
  });
}

}  // namespace

const OpDef kBitShift{.name = "BitShift",
                      .min_inputs = 2,
                      .max_inputs = 2,
                      .max_outputs = 1,
                      .attrs = kAttrs,
                      .infer = infer,
                      .run = run};

}  // namespace qtn::ops
