// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/reduced_floats.hpp"
#include "ops/common/softmax.hpp"
#include "ops/common/sums.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_softmax("LogSoftmax", call); }

/// y = x - top - log(sum of exp(x - top)); until then y holds these.
void run_row(const float *x, float *y, std::int64_t length) {
  const auto count = static_cast<std::size_t>(length);
  const float top = extremum_of(kernels::Arithmetic::max, x, count);
  for (std::int64_t k = 0; k < length; ++k) y[k] = x[k] - top;
  kernels::activation_kernel().run(kernels::Activation::exp, y, y, count);
  const auto logarithm = static_cast<float>(std::log(kernels::rows_kernel().sum(y, count)));
  for (std::int64_t k = 0; k < length; ++k) y[k] = x[k] - top - logarithm;
}

void run(const Call &call, std::span<Tensor> outputs) {
  if (outputs[0].dtype() == QTN_FLOAT32 && SoftmaxRows("LogSoftmax", call).inner == 1)
    return for_softmax_rows("LogSoftmax", call, [&](std::int64_t at, std::int64_t length, std::int64_t) {
      run_row(call.in(0)->as<const float>() + at, outputs[0].as<float>() + at, length);
    });
  run_softmax("LogSoftmax", call, outputs[0],
              [](auto *to, auto *from, auto top, double sum, std::int64_t length, std::int64_t step) {
                const auto logarithm = static_cast<decltype(top)>(std::log(sum));
                for (std::int64_t k = 0; k < length; ++k) to[k * step] = from[k * step] - top - logarithm;
              });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &dy = run.dy[0], &y = run.outputs[0];
  if (!dx[0].has_data()) return;
  for_softmax_rows("LogSoftmax", run.call, [&](std::int64_t at, std::int64_t length, std::int64_t step) {
    const float *slope = dy.as<const float>() + at, *from = y.as<const float>() + at;
    float *to = dx[0].as<float>() + at;
    const auto total = static_cast<float>(sum_of(length, [=](std::int64_t k) { return slope[k * step]; }));
    for (std::int64_t k = 0; k < length; ++k) to[k * step] = slope[k * step] - std::exp(from[k * step]) * total;
  });
}

}  // namespace

const OpDef kLogSoftmax{.name = "LogSoftmax",
                        .min_inputs = 1,
                        .max_inputs = 1,
                        .max_outputs = 1,
                        .attrs = kSoftmaxAttrs,
                        .infer = infer,
                        .run = run,
                        .backward = backward,
                        .keeps = {.outputs = true},
                        .upgrade = upgrade_softmax};

}  // namespace qtn::ops
