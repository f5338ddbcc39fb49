// SPDX-License-Identifier: Apache-2.0
#include "ops/common/bits.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  require_integer("BitwiseNot", "x", *call.in(0));
  return {{call.in(0)->dtype(), call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  dispatch_width(call.in(0)->dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_elements<T>(*call.in(0), outputs[0], [](T x) { return static_cast<T>(~x); });
  });
}

}  // namespace

const OpDef kBitwiseNot{
    .name = "BitwiseNot", .min_inputs = 1, .max_inputs = 1, .max_outputs = 1, .attrs = {}, .infer = infer, .run = run};

}  // namespace qtn::ops
