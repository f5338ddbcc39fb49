// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/rows.hpp"
#include "kernels/rows/turned.hpp"
#include "ops/common/softmax.hpp"
#include "ops/common/softmax_columns.hpp"
#include "ops/common/sums.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) { return infer_softmax("LogSoftmax", call); }

/// Rows that are longer than a vector.
void run_rows(const float *x, float *y, std::size_t rows, std::size_t length) {
  constexpr std::size_t kTask = std::size_t{1} << 13;  // elements
  const std::size_t step = std::max<std::size_t>(1, kTask / length);
  parallel_for(ceil_div(rows, step), [=, log_softmax = kernels::rows_kernel().log_softmax](std::size_t task) {
    const std::size_t first = task * step * length;
    log_softmax({x + first, std::min(step, rows - task * step), length, 1, y + first});
  });
}

/// The longest row of which a vector is taken to hold several, and how many rows are turned at a time.
constexpr std::size_t kShortRow = 15, kTogether = 16;

void run_short_rows(const float *x, float *y, std::size_t rows, std::size_t length) {
  constexpr std::size_t kTask = 512;
  parallel_for(ceil_div(rows, kTask), [=](std::size_t task) {
    const std::size_t first = task * kTask;
    float results[kShortRow * kTogether];
    kernels::for_turned_rows<kShortRow, kTogether>(x + first * length, y + first * length,
                                                   std::min(kTask, rows - first), length, [&](const float *turned) {
                                                     softmax_columns(turned, results, length, kTogether, true);
                                                     return static_cast<const float *>(results);
                                                   });
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const SoftmaxRows rows("LogSoftmax", call);
  if (y.dtype() != QTN_FLOAT32)
    return run_softmax(
        "LogSoftmax", call, y,
        [](double *to, const double *from, double top, double sum, std::int64_t length, std::int64_t step) {
          const double logarithm = std::log(sum);
          for (std::int64_t k = 0; k < length; ++k) to[k * step] = from[k * step] - top - logarithm;
        });
  if (y.count() == 0) return;
  const auto columns = static_cast<std::size_t>(rows.length);
  if (rows.inner == 1)
    return (columns <= kShortRow ? run_short_rows : run_rows)(x.as<const float>(), y.as<float>(),
                                                              static_cast<std::size_t>(x.count()) / columns, columns);
  const std::int64_t plane = rows.length * rows.inner;
  parallel_for(static_cast<std::size_t>(x.count() / plane), [&](std::size_t index) {
    const std::int64_t at = static_cast<std::int64_t>(index) * plane;
    softmax_columns(x.as<const float>() + at, y.as<float>() + at, columns, static_cast<std::size_t>(rows.inner), true);
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
