// SPDX-License-Identifier: Apache-2.0
// To Conv what DynamicQuantizeMatMul is to MatMul. Files have DynamicQuantizeLinear and ConvInteger in its place.
#include <algorithm>

#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "DynamicQuantizeConv";
constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString},   {"dilations", AttrSpec::kInts},
                               {"group", AttrSpec::kInt},         {"kernel_shape", AttrSpec::kInts},
                               {"pads", AttrSpec::kInts},         {"strides", AttrSpec::kInts},
                               {kNumericsAttr, AttrSpec::kString}};

// Inputs x (float32), w, w_scale, w_zero_point, bias.
Grid w_grid(const Call &call) {
  const Tensor &w = *call.in(1);
  return {kName, "w", w.dtype(), call.in(2), call.in(3), w.rank() ? w.dim(0) : 1, 0};
}

Attrs attrs_of_conv(const Call &call) {
  Attrs attrs = call.attrs;
  attrs.erase(kNumericsAttr);
  return attrs;
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &w = *call.in(1);
  require_float(kName, "x", &x);
  own_grid(kName, call.attrs);
  require_8bit(kName, "w", w);
  check_grid(w_grid(call));
  const Shape shape = real_shape(kConv, attrs_of_conv(call), {&x, &w});
  if (const Tensor *bias = call.in(4)) {
    require_float(kName, "bias", bias);
    if (!(bias->shape() == Shape{w.dim(0)}))
      fail(QTN_ESHAPE, kName, ": bias is ", to_string(bias->shape()), ", not one number for each of ", w.dim(0),
           " channels");
  }
  return {{QTN_FLOAT32, shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0], w = call.in(1)->with_quantizer(quantizer_of(w_grid(call)));
  const Tensor on_grid = quantize(x, dynamic_quantizer(kName, x, own_grid(kName, call.attrs).numerics));
  run_on_grids(kConv, attrs_of_conv(call), {&on_grid, &w}, nullptr, y);
  if (!call.in(4)) return;
  Shape by_channel = y.shape();
  by_channel.erase(0);
  std::fill(by_channel.begin() + 1, by_channel.end(), 1);
  const Tensor bias = call.in(4)->reshaped(by_channel);
  map_broadcast<float, float>(y, bias, y.shape(), y.as<float>(), [](float v, float b) { return v + b; });
}

}  // namespace

const OpDef kDynamicQuantizeConv{.name = kName,
                                 .domain = kOwnDomain,
                                 .min_inputs = 3,
                                 .max_inputs = 5,
                                 .max_outputs = 1,
                                 .attrs = kAttrs,
                                 .any_type = true,  // files have nodes in its place that make float32
                                 .infer = infer,
                                 .run = run,
                                 .work = work_of_convolution};

}  // namespace qtn::ops
