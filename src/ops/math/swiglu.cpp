// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"alpha", AttrSpec::kFloat}};

Types infer(const Call &call) {
  const Tensor &a = *call.in(0), &b = *call.in(1);
  require_real("SwiGLU", "a", &a);
  require_same_dtype("SwiGLU", a, b);
  if (a.shape() != b.shape())
    fail(QTN_ESHAPE, "SwiGLU: a ", to_string(a.shape()), " and b ", to_string(b.shape()), " differ");
  return {{a.dtype(), a.shape()}};
}

template <class T>
void run_as(const Call &call, const Tensor &y) {
  const auto alpha = static_cast<T>(call.attrs.get_float("alpha", 1));
  map_broadcast<T, T>(*call.in(0), *call.in(1), y.shape(), y.as<T>(),
                      [alpha](T a, T b) { return a / (1 + std::exp(-alpha * a)) * b; });
}

void run(const Call &call, std::span<Tensor> outputs) {
  outputs[0].dtype() == QTN_FLOAT64 ? run_as<double>(call, outputs[0]) : run_as<float>(call, outputs[0]);
}

}  // namespace

const OpDef kSwiGLU{.name = "SwiGLU",
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run};

}  // namespace qtn::ops
