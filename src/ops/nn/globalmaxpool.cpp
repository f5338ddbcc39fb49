// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduced_floats.hpp"
#include "ops/common/reshaping.hpp"
#include "ops/common/spatial.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "GlobalMaxPool";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_number(kName, "x", x);
  const Shape shape = global_pool_shape(kName, x.shape());
  if (x.count() == 0 && element_count(shape) > 0)
    fail(QTN_ESHAPE, kName, ": x ", to_string(x.shape()), " has no largest elements");
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  reduce_extremum(kernels::Arithmetic::max, call, spatial_axes(call), outputs[0]);
}

}  // namespace

const OpDef kGlobalMaxPool{.name = kName,
                           .min_inputs = 1,
                           .max_inputs = 1,
                           .max_outputs = 1,
                           .attrs = {},
                           .infer = infer,
                           .run = run,
                           .moves = always_moves,
                           .homogeneous = true};

}  // namespace qtn::ops
