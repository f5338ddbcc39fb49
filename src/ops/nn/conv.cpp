// SPDX-License-Identifier: Apache-2.0
#include "ops/common/conv_gradient.hpp"
#include "ops/common/depthwise.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/im2col.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/integer_product.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString}, {"dilations", AttrSpec::kInts},
                               {"group", AttrSpec::kInt},       {"kernel_shape", AttrSpec::kInts},
                               {"pads", AttrSpec::kInts},       {"strides", AttrSpec::kInts}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &weight = *call.in(1);
  require_float("Conv", "x", &x);
  require_float("Conv", "weight", &weight);
  require_float("Conv", "bias", call.in(2));
  const Window w = conv_window(call.attrs, x.shape(), weight.shape());
  const std::int64_t groups = call.attrs.get_int("group", 1), filters = weight.dim(0);
  if (groups < 1) fail(QTN_EINVAL, "Conv: group is ", groups);
  const auto shapes = [&] { return cat("(x ", to_string(x.shape()), ", weight ", to_string(weight.shape()), ")"); };
  if (x.dim(1) % groups != 0 || x.dim(1) / groups != weight.dim(1))
    fail(QTN_ESHAPE, "Conv: weight wants ",
         groups == 1 ? cat(weight.dim(1)) : cat(groups, " groups of ", weight.dim(1)), " input channels, x has ",
         x.dim(1), " ", shapes());
  if (filters % groups != 0)
    fail(QTN_ESHAPE, "Conv: ", filters, " filters do not split into ", groups, " groups ", shapes());
  if (const Tensor *bias = call.in(2); bias && !(bias->shape() == Shape{filters}))
    fail(QTN_ESHAPE, "Conv: bias is ", to_string(bias->shape()), " for ", filters, " filters ", shapes());
  Shape shape{x.dim(0), filters};
  for (std::size_t i = 0; i < w.rank; ++i) shape.push_back(w.out[i]);
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Convolution conv = convolution_of(call);
  const float *x = call.in(0)->as<const float>(), *weight = call.in(1)->as<const float>();
  const float *bias = call.in(2) ? call.in(2)->as<const float>() : nullptr;
  float *y = outputs[0].as<float>();
  if (run_depthwise(conv, x, weight, bias, y)) return;
  Scratch own;
  const ConvRuns runs(conv, ConvPasses::forward);
  runs.forward(x, weight, y, call.scratch ? *call.scratch : own);
  if (bias) runs.add_bias(bias, y);
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  const Tensor &x = *call.in(0), &weight = *call.in(1), *bias = call.in(2);
  if (!is_integer_product(x, weight, 0, bias, output)) return false;
  const Convolution conv = convolution_of(call);
  const CountedVector<double> w = centered_doubles(weight, 0);
  CountedVector<double> sums(static_cast<std::size_t>(output.count()));
  const std::int32_t zero = x.quantizer()->zero_point();
  if (x.dtype() == QTN_INT8)
    convolve(conv, x.as<const std::int8_t>(), static_cast<std::int8_t>(zero), w.data(), sums.data());
  else
    convolve(conv, x.as<const std::uint8_t>(), static_cast<std::uint8_t>(zero), w.data(), sums.data());
  store_products(output, sums, static_cast<std::size_t>(conv.out_size()), *x.quantizer(), *weight.quantizer(), bias,
                 static_cast<std::size_t>(conv.filters), clamp);
  return true;
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  conv_backward(ConvRuns(convolution_of(run.call)), run, dx);
}

constexpr ProductForm kProduct{.convolution = true, .channel_axis = [](const Attrs &) -> std::size_t { return 0; }};

}  // namespace

void conv_backward(const ConvRuns &conv, const Backward &run, std::span<const Tensor> dx, bool adds) {
  const Tensor &dy = run.dy[0];
  if (dx[0].has_data())
    conv.input_gradient(run.call.in(1)->as<const float>(), dy.as<const float>(), dx[0].as<float>(), adds, run.scratch);
  if (dx[1].has_data())
    conv.weight_gradient(run.call.in(0)->as<const float>(), dy.as<const float>(), dx[1].as<float>(), run.scratch);
  if (run.call.in(2)) channel_gradient(dx[2], dy);
}

Convolution convolution_of(const Call &call) {
  const Shape &x = call.in(0)->shape(), &w = call.in(1)->shape();
  const Window window = conv_window(call.attrs, x, w).lifted();
  return {x[0], x[1], w[0], call.attrs.get_int("group", 1), window};
}

const OpDef kConv{.name = "Conv",
                  .min_inputs = 2,
                  .max_inputs = 3,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .run_quantized = run_quantized,
                  .backward = backward,
                  .keeps = {.inputs = kAllInputs},
                  .product = &kProduct,
                  .weights = {1, 1},
                  .offsets = {2, 1},
                  .work = work_of_convolution};

}  // namespace qtn::ops
