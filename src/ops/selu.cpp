// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/elementwise.hpp"
#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}, {"gamma", AttrSpec::kFloat}};

Types infer(const Call &call) { return infer_real_unary("Selu", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  const double alpha = call.attrs.get_float("alpha", 1.67326319217681884765625);
  const double gamma = call.attrs.get_float("gamma", 1.05070102214813232421875);
  map_reals(call, outputs, [alpha, gamma](auto x) {
    using T = decltype(x);
    return static_cast<T>(gamma) * (x > 0 ? x : static_cast<T>(alpha) * std::expm1(x));
  });
}

}  // namespace

const OpDef kSelu{.name = "Selu",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .elementwise = true};

}  // namespace qtn::ops
