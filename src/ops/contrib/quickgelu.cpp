// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("QuickGelu", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = static_cast<double>(static_cast<float>(call.attrs.get_float("alpha", 1.702)));
  map_reals(call, outputs, [alpha](auto x) {
    using T = decltype(x);
    return x / (1 + std::exp(static_cast<T>(-alpha) * x));
  });
}

}  // namespace

const OpDef kQuickGelu{.name = "QuickGelu",
                       .domain = kMicrosoft,
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .max_outputs = 1,
                       .attrs = kAttrs,
                       .infer = infer,
                       .run = run,
                       .elementwise = true};

}  // namespace qtn::ops
