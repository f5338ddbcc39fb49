// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/arithmetic.hpp"
#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/reduced_floats.hpp"
#include "ops/common/scratch_tensors.hpp"
#include "ops/common/sums.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"p", AttrSpec::kInt}};
constexpr const char *kName = "LpNormalization";

Types infer(const Call &call) {
  const Types types = infer_real_unary(kName, call);
  normalize_axis(call.attrs.get_int("axis", -1), call.in(0)->rank(), kName);
  if (const std::int64_t p = call.attrs.get_int("p", 2); p != 1 && p != 2)
    fail(QTN_EINVAL, kName, ": p is ", p, ", not 1 or 2");
  return types;
}

/// Zeros stay zeros.
void normalize_doubles(const Call &call, std::size_t axis, bool absolute, const Tensor &y) {
  const Tensor &x = *call.in(0);
  const std::int64_t length = x.dim(axis), inner = element_count(x.shape(), axis + 1, x.rank());
  parallel_for(static_cast<std::size_t>(x.count() / length), [&](std::size_t index) {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t at = i / inner * length * inner + i % inner;
    const double *from = x.as<const double>() + at;
    double *to = y.as<double>() + at;
    const double sum = sum_of(length, [&](std::int64_t k) {
      const double v = from[k * inner];
      return absolute ? std::abs(v) : v * v;
    });
    const double norm = absolute ? sum : std::sqrt(sum);
    for (std::int64_t k = 0; k < length; ++k) to[k * inner] = norm == 0 ? 0 : from[k * inner] / norm;
  });
}

/// The same, by what zeros may be divided by as well.
void normalize_floats(const Call &call, std::size_t axis, bool absolute, const Tensor &y) {
  const Tensor &x = *call.in(0);
  AxisSet axes{};
  axes[axis] = true;
  Shape shape = x.shape();
  shape[axis] = 1;
  Scratch own, &scratch = call.scratch ? *call.scratch : own;
  const auto [norms] = scratch_tensors<1>(scratch, {{{QTN_FLOAT32, shape}}});
  sum_floats(
      absolute ? Addends::magnitudes : Addends::squares, x, axes, 1,
      absolute ? nullptr : +[](double sum) { return std::sqrt(sum); }, norms);
  map_elements<float>(norms, norms, [](float norm) { return norm == 0 ? 1 : norm; });
  run_arithmetic(kernels::Arithmetic::div, x, norms, y);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (x.count() == 0) return;
  const std::size_t axis = normalize_axis(call.attrs.get_int("axis", -1), x.rank(), kName);
  const bool absolute = call.attrs.get_int("p", 2) == 1;
  x.dtype() == QTN_FLOAT64 ? normalize_doubles(call, axis, absolute, y) : normalize_floats(call, axis, absolute, y);
}

}  // namespace

const OpDef kLpNormalization{
    .name = kName, .min_inputs = 1, .max_inputs = 1, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
