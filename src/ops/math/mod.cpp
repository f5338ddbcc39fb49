// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"fmod", AttrSpec::kInt}};

Types infer(const Call &call) { return infer_binary("Mod", call); }

/// The remainder of a quotient rounded down, with the sign of b, or (`truncated`) towards zero, with the sign of a.
template <class T>
T modulo(T a, T b, bool truncated) {
  if constexpr (std::is_floating_point_v<T>) {
    T rest = std::fmod(a, b);
    if (truncated || std::isnan(rest)) return rest;
    if (rest == 0) return std::copysign(rest, b);
    return (rest < 0) == (b < 0) ? rest : rest + b;
  } else {
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;  // the quotient may not fit
    const auto rest = static_cast<T>(a % b);
    return truncated || rest == 0 || (rest < 0) == (b < 0) ? rest : static_cast<T>(rest + b);
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &a = *call.in(0), &b = *call.in(1), &y = outputs[0];
  const bool truncated = call.attrs.get_int("fmod", 0) != 0;
  dispatch_number(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>)
      if (y.count() > 0 && std::count(b.as<T>(), b.as<T>() + b.count(), T(0)) > 0)
        fail(QTN_EINVAL, "Mod: division of integers by zero");
    map_broadcast<T, T>(a, b, y.shape(), y.as<T>(), [truncated](T u, T v) { return modulo(u, v, truncated); });
  });
}

}  // namespace

const OpDef kMod{.name = "Mod",
                 .min_inputs = 2,
                 .max_inputs = 2,
                 .max_outputs = 1,
                 .attrs = kAttrs,
                 .infer = infer,
                 .run = run,
                 .elementwise = true};

}  // namespace qtn::ops
