// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_number_unary("Abs", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  dispatch_number(call.in(0)->dtype(), [&](auto zero) {
    using T = decltype(zero);
    // The lowest integer has no positive counterpart and stays.
    map_elements<T>(*call.in(0), outputs[0], [](T x) {
      if constexpr (std::is_floating_point_v<T>)
        return std::abs(x);
      else
        return x < T(0) ? static_cast<T>(0 - static_cast<std::uint64_t>(x)) : x;
    });
  });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  backward_by_input(run, dx, [](float slope, float x) { return choose(x > 0, slope, choose(x < 0, -slope, 0)); });
}

}  // namespace

const OpDef kAbs{.name = "Abs",
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .max_outputs = 1,
                 .attrs = {},
                 .infer = infer,
                 .run = run,
                 .elementwise = true,
                 .backward = backward,
                 .keeps = {.inputs = kAllInputs}};

}  // namespace qtn::ops
