// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradient.hpp"
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const Shape shape(constant_ints("Expand", "shape", *call.in(1)));
  for (const std::int64_t dim : shape)
    if (dim < 0) fail(QTN_EINVAL, "Expand: shape has a dimension of ", dim);
  return {{x.dtype(), broadcast(x.shape(), shape, "Expand")}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  const Shape &shape = outputs[0].shape();
  copy_elements(outputs[0], x.view(shape, broadcast_strides(x.shape(), x.strides(), shape)));
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  broadcast_gradient(dx[0], run.dy[0], [](float slope) { return slope; });
}

}  // namespace

const OpDef kExpand{.name = "Expand",
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .max_outputs = 1,
                    .attrs = {},
                    .any_type = true,
                    .infer = infer,
                    .run = run,
                    .moves = always_moves,
                    .backward = backward,
                    .shapes_from = {1, 1}};

}  // namespace qtn::ops
