// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/moments.hpp"
#include "ops/common/skip.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "SkipLayerNormalization";

Types infer(const Call &call) { return infer_skip(kName, call); }

template <class T>
void normalize(const Call &call, std::span<Tensor> outputs) {
  const Tensor sum = skip_sum<T>(call, 4, outputs);
  const std::int64_t length = sum.shape().back();
  const double epsilon = call.attrs.get_float("epsilon", 1e-12);
  const T *scale = call.in(2)->as<const T>(), *shift = call.in(3) ? call.in(3)->as<const T>() : nullptr;
  float *means = statistic(outputs, 1), *inverses = statistic(outputs, 2);
  // Rows of no elements have a mean, too.
  parallel_for(static_cast<std::size_t>(element_count(sum.shape(), 0, sum.rank() - 1)), [&](std::size_t row) {
    const std::int64_t at = static_cast<std::int64_t>(row) * length;
    const T *from = sum.as<const T>() + at;
    T *to = outputs[0].as<T>() + at;
    const Moments m = moments(from, length);
    const double inverse = 1 / std::sqrt(m.variance + epsilon);
    for (std::int64_t i = 0; i < length; ++i)
      to[i] = static_cast<T>((static_cast<double>(from[i]) - m.mean) * inverse) * scale[i] + (shift ? shift[i] : T(0));
    if (means) means[row] = static_cast<float>(m.mean);
    if (inverses) inverses[row] = static_cast<float>(inverse);
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? normalize<double>(call, outputs) : normalize<float>(call, outputs);
}

}  // namespace

const OpDef kSkipLayerNormalization{.name = kName,
                                    .domain = kMicrosoft,
                                    .min_inputs = 3,
                                    .max_inputs = 5,
                                    .max_outputs = 4,
                                    .attrs = kSkipAttrs,
                                    .infer = infer,
                                    .run = run,
                                    .offsets = {2, 3},
                                    .output_dtype = skip_dtype};

}  // namespace qtn::ops
