// SPDX-License-Identifier: Apache-2.0
#include "ops/common/bits.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_bits("BitwiseOr", call); }

void run(const Call &call, std::span<Tensor> outputs) {
  run_bits(call, outputs, [](auto a, auto b) { return a | b; });
}

}  // namespace

const OpDef kBitwiseOr{
    .name = "BitwiseOr", .min_inputs = 2, .max_inputs = 2, .max_outputs = 1, .attrs = {}, .infer = infer, .run = run};

}  // namespace qtn::ops
