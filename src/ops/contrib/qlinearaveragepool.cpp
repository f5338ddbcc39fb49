// SPDX-License-Identifier: Apache-2.0
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "QLinearAveragePool";
constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString},   {"ceil_mode", AttrSpec::kInt},
                               {"channels_last", AttrSpec::kInt}, {"count_include_pad", AttrSpec::kInt},
                               {"kernel_shape", AttrSpec::kInts}, {"pads", AttrSpec::kInts},
                               {"strides", AttrSpec::kInts}};

Types infer(const Call &call) {
  return infer_qlinear_unary(kName, kAveragePool, without_channels_last(kName, call.attrs), call);
}

void run(const Call &call, std::span<Tensor> outputs) {
  run_qlinear_unary(kName, kAveragePool, without_channels_last(kName, call.attrs), call, outputs[0]);
}

}  // namespace

const OpDef kQLinearAveragePool{.name = kName,
                                .domain = kMicrosoft,
                                .min_inputs = 2,
                                .max_inputs = 5,
                                .max_outputs = 1,
                                .attrs = kAttrs,
                                .infer = infer,
                                .run = run,
                                .work = work_of_pool};

}  // namespace qtn::ops
