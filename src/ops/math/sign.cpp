// SPDX-License-Identifier: Apache-2.0
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_number_unary("Sign", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  dispatch_number(call.in(0)->dtype(), [&](auto zero) {
    using T = decltype(zero);
    // NaN stays NaN, as in NumPy.
    map_elements<T>(*call.in(0), outputs[0], [](T x) {
      const T of_rest = x < T(0) ? static_cast<T>(-1) : x;
      return x > T(0) ? T(1) : of_rest;
    });
  });
}

}  // namespace

const OpDef kSign{.name = "Sign",
                  .min_inputs = 1,
                  .max_inputs = 1,
                  .max_outputs = 1,
                  .attrs = {},
                  .infer = infer,
                  .run = run,
                  .elementwise = true};

}  // namespace qtn::ops
