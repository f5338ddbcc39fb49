// SPDX-License-Identifier: Apache-2.0
#include "ops/common/infer.hpp"
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "ConvInteger";
constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString}, {"dilations", AttrSpec::kInts},
                               {"group", AttrSpec::kInt},       {"kernel_shape", AttrSpec::kInts},
                               {"pads", AttrSpec::kInts},       {"strides", AttrSpec::kInts}};

// Inputs x, w, x_zero_point, w_zero_point.
Grid x_grid(const Call &call) { return {kName, "x", call.in(0)->dtype(), nullptr, call.in(2)}; }
Grid w_grid(const Call &call) {
  const Tensor &w = *call.in(1);
  return {kName, "w", w.dtype(), nullptr, call.in(3), w.rank() ? w.dim(0) : 1, 0};
}

Types infer(const Call &call) {
  const Tensor &w = *call.in(1);
  require_8bit(kName, "x", *call.in(0));
  require_8bit(kName, "w", w);
  check_grid(x_grid(call));
  check_grid(w_grid(call));
  const Shape shape = real_shape(kConv, call.attrs, {call.in(0), &w});
  check_int32_sums(x_grid(call), w_grid(call), element_count(w.shape(), 1, w.rank()));
  return {{QTN_INT32, shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor x = call.in(0)->with_quantizer(quantizer_of(x_grid(call)));
  const Tensor w = call.in(1)->with_quantizer(quantizer_of(w_grid(call)));
  run_sums(kConv, call.attrs, {&x, &w}, outputs[0]);
}

}  // namespace

const OpDef kConvInteger{.name = kName,
                         .min_inputs = 2,
                         .max_inputs = 4,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .infer = infer,
                         .run = run,
                         .work = work_of_convolution,
                         .output_dtype = makes<QTN_INT32>};

}  // namespace qtn::ops
