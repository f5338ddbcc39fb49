// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/reduction.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axes", AttrSpec::kInts}};
constexpr const char *kName = "MeanVarianceNormalization";

AxisSet axes_of(const Call &call) {
  AxisSet axes{};
  for (const std::int64_t axis : call.attrs.get_ints("axes", {0, 2, 3}))
    axes[normalize_axis(axis, call.in(0)->rank(), kName)] = true;
  return axes;
}

Types infer(const Call &call) {
  axes_of(call);
  return infer_real_unary(kName, call);
}

/// (x - mean) / (deviation + 1e-9), which is where ONNX's definition keeps it from dividing by zero.
template <class T>
void normalize(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  const AxisSet axes = axes_of(call);
  Shape kept = x.shape();
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (axes[i]) kept[i] = 1;
  const double count = static_cast<double>(x.count()) / static_cast<double>(element_count(kept));
  const Tensor means(QTN_FLOAT64, kept), deviations(QTN_FLOAT64, kept), centered(QTN_FLOAT64, x.shape());
  const auto mean = [count](double sum) { return sum / count; };
  reduce<T, double>(
      x, axes, means, 0.0, [](double sum, T v) { return sum + static_cast<double>(v); }, mean);
  map_broadcast<T, double>(x, means, x.shape(), centered.as<double>(),
                           [](T v, double m) { return static_cast<double>(v) - m; });
  reduce<double, double>(
      centered, axes, deviations, 0.0, [](double sum, double v) { return sum + v * v; },
      [count](double sum) { return std::sqrt(sum / count); });
  map_broadcast<double, double>(centered, deviations, x.shape(), y.as<T>(),
                                [](double v, double d) { return static_cast<T>(v / (d + 1e-9)); });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? normalize<double>(call, outputs[0]) : normalize<float>(call, outputs[0]);
}

}  // namespace

const OpDef kMeanVarianceNormalization{
    .name = kName, .min_inputs = 1, .max_inputs = 1, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
