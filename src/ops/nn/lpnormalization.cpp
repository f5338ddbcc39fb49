// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/infer.hpp"
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
template <class T>
void normalize(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  const std::size_t axis = normalize_axis(call.attrs.get_int("axis", -1), x.rank(), kName);
  const bool absolute = call.attrs.get_int("p", 2) == 1;
  const std::int64_t length = x.dim(axis), inner = element_count(x.shape(), axis + 1, x.rank());
  parallel_for(static_cast<std::size_t>(x.count() / length), [&](std::size_t index) {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t at = i / inner * length * inner + i % inner;
    const T *from = x.as<const T>() + at;
    T *to = y.as<T>() + at;
    const double sum = sum_of(length, [&](std::int64_t k) {
      const auto v = static_cast<double>(from[k * inner]);
      return absolute ? std::abs(v) : v * v;
    });
    const double norm = absolute ? sum : std::sqrt(sum);
    for (std::int64_t k = 0; k < length; ++k)
      to[k * inner] = norm == 0 ? T(0) : static_cast<T>(static_cast<double>(from[k * inner]) / norm);
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? normalize<double>(call, outputs[0]) : normalize<float>(call, outputs[0]);
}

}  // namespace

const OpDef kLpNormalization{
    .name = kName, .min_inputs = 1, .max_inputs = 1, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
