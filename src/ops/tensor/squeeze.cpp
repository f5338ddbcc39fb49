// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  std::vector<std::size_t> axes;
  if (call.in(1)) {
    axes = constant_axes("Squeeze", *call.in(1), x.rank());
  } else {
    for (std::size_t i = 0; i < x.rank(); ++i)
      if (x.dim(i) == 1) axes.push_back(i);
  }
  std::sort(axes.rbegin(), axes.rend());
  Shape shape = x.shape();
  for (const std::size_t axis : axes) {
    if (shape[axis] != 1) fail(QTN_ESHAPE, "Squeeze: dimension ", axis, " of x ", to_string(x.shape()), " is not 1");
    shape.erase(axis);
  }
  return {{x.dtype(), shape}};
}

void upgrade(OldNode &node) {
  if (node.opset < 13) ints_to_input(node, "axes", 1);
}

}  // namespace

const OpDef kSqueeze{.name = "Squeeze",
                     .min_inputs = 1,
                     .max_inputs = 2,
                     .max_outputs = 1,
                     .attrs = {},
                     .any_type = true,
                     .infer = infer,
                     .run = run_copy,
                     .moves = always_moves,
                     .backward = backward_copy,
                     .keeps_order = true,
                     .shapes_from = {1, 1},
                     .upgrade = upgrade};

}  // namespace qtn::ops
