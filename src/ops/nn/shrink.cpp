// SPDX-License-Identifier: Apache-2.0
#include "ops/common/convert.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"bias", AttrSpec::kFloat}, {"lambd", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_number_unary("Shrink", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double bias = call.attrs.get_float("bias", 0), lambd = call.attrs.get_float("lambd", 0.5);
  dispatch_number(call.in(0)->dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_same_v<T, float>, float, double>;
    const auto move = static_cast<Wide>(bias), edge = static_cast<Wide>(lambd);
    map_elements<T>(*call.in(0), outputs[0], [=](T x) {
      const auto v = static_cast<Wide>(x);
      return v < -edge ? convert<T>(v + move) : v > edge ? convert<T>(v - move) : v != v ? x : T(0);
    });
  });
}

}  // namespace

const OpDef kShrink{.name = "Shrink",
                    .min_inputs = 1,
                    .max_inputs = 1,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .elementwise = true};

}  // namespace qtn::ops
