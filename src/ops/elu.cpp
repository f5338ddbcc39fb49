// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/elementwise.hpp"
#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("Elu", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = call.attrs.get_float("alpha", 1);
  map_reals(call, outputs, [alpha](auto x) {
    using T = decltype(x);
    return x < 0 ? static_cast<T>(alpha) * std::expm1(x) : x;
  });
}

}  // namespace

const OpDef kElu{.name = "Elu",
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .max_outputs = 1,
                 .attrs = kAttrs,
                 .infer = infer,
                 .run = run,
                 .elementwise = true};

}  // namespace qtn::ops
