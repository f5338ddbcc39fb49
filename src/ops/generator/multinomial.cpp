// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/elementary.hpp"
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"dtype", AttrSpec::kInt}, {"sample_size", AttrSpec::kInt}, {"seed", AttrSpec::kFloat}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("Multinomial", "input", &x);
  if (x.rank() != 2 || x.dim(1) == 0)
    fail(QTN_ESHAPE, "Multinomial: input ", to_string(x.shape()), " must be [batch, classes]");
  const std::int64_t samples = call.attrs.get_int("sample_size", 1);
  if (samples < 0) fail(QTN_EINVAL, "Multinomial: sample_size is ", samples);
  const qdtype dtype = dtype_attribute("Multinomial", call.attrs, "dtype", QTN_INT32);
  if (dtype != QTN_INT32 && dtype != QTN_INT64)
    fail(QTN_EDTYPE, "Multinomial: dtype is ", dtype_name(dtype), ", not int32 or int64");
  return {{dtype, {x.dim(0), samples}}};
}

/// Chances of the classes up to each, of logarithms of what chances are in proportion to.
template <class T>
void sum_chances(const T *logarithms, std::span<double> sums) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t c = 0; c < sums.size(); ++c) top = std::max(top, static_cast<double>(logarithms[c]));
  for (std::size_t c = 0; c < sums.size(); ++c) sums[c] = sum += exponential(static_cast<double>(logarithms[c]) - top);
  if (!std::isfinite(sum)) fail(QTN_EINVAL, "Multinomial: a row of input has no finite probabilities");
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const Draws draws(call.attrs);
  const std::int64_t samples = y.dim(1);
  std::vector<double> sums(static_cast<std::size_t>(x.dim(1)));
  for (std::int64_t row = 0; row < y.dim(0); ++row) {
    x.dtype() == QTN_FLOAT64 ? sum_chances(x.as<const double>() + row * x.dim(1), sums)
                             : sum_chances(x.as<const float>() + row * x.dim(1), sums);
    for (std::int64_t i = row * samples; i < (row + 1) * samples; ++i) {
      const auto found = std::upper_bound(sums.begin(), sums.end() - 1, draws.uniform(i) * sums.back());
      const auto index = static_cast<double>(found - sums.begin());
      store_doubles(y, i, std::span(&index, 1));
    }
  }
}

qdtype output_dtype(const Attrs &attrs, std::size_t, qdtype) {
  return static_cast<qdtype>(attrs.get_int("dtype", QTN_INT32));
}

}  // namespace

const OpDef kMultinomial{.name = "Multinomial",
                         .min_inputs = 1,
                         .max_inputs = 1,
                         .max_outputs = 1,
                         .attrs = kAttrs,
                         .infer = infer,
                         .run = run,
                         .output_dtype = output_dtype};

}  // namespace qtn::ops
