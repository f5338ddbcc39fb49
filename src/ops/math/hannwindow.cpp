// SPDX-License-Identifier: Apache-2.0
#include "ops/common/cosine_window.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_window("HannWindow", call); }

void run(const Call &call, std::span<Tensor> outputs) { run_window(call, outputs[0], 0.5, 0.5, 0); }

}  // namespace

const OpDef kHannWindow{.name = "HannWindow",
                        .min_inputs = 1,
                        .max_inputs = 1,
                        .max_outputs = 1,
                        .attrs = kWindowAttrs,
                        .infer = infer,
                        .run = run,
                        .output_dtype = window_dtype};

}  // namespace qtn::ops
