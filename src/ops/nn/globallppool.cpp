// SPDX-License-Identifier: Apache-2.0
#include "ops/common/powers.hpp"
#include "ops/common/spatial.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"p", AttrSpec::kInt}};
constexpr const char *kName = "GlobalLpPool";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real(kName, "x", &x);
  (void)Norm(kName, call.attrs);
  return {{x.dtype(), global_pool_shape(kName, x.shape())}};
}

template <class T>
void pool(const Call &call, const Tensor &y) {
  const Norm norm(kName, call.attrs);
  reduce<T, T>(
      *call.in(0), spatial_axes(call), y, 0.0,
      [norm](double sum, T v) { return sum + norm.power(static_cast<double>(v)); },
      [norm](double sum) { return static_cast<T>(norm.root(sum)); });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? pool<double>(call, outputs[0]) : pool<float>(call, outputs[0]);
}

}  // namespace

const OpDef kGlobalLpPool{.name = kName,
                          .min_inputs = 1,
                          .max_inputs = 1,
                          .max_outputs = 1,
                          .attrs = kAttrs,
                          .infer = infer,
                          .run = run,
                          .homogeneous = true,
                          .upgrade = upgrade_norm};

}  // namespace qtn::ops
