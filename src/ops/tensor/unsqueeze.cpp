// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const auto added = static_cast<std::size_t>(call.in(1)->count());
  if (added > kMaxRank || x.rank() + added > kMaxRank)
    fail(QTN_ESHAPE, "Unsqueeze: ", added, " axes more than x ", to_string(x.shape()), " are over the limit of ",
         kMaxRank);
  std::vector<std::size_t> axes = constant_axes("Unsqueeze", *call.in(1), x.rank() + added);
  std::sort(axes.begin(), axes.end());
  Shape shape = x.shape();
  for (const std::size_t axis : axes) shape.insert(axis, 1);
  return {{x.dtype(), shape}};
}

void upgrade(OldNode &node) {
  if (node.opset < 13) ints_to_input(node, "axes", 1);
}

}  // namespace

const OpDef kUnsqueeze{.name = "Unsqueeze",
                       .min_inputs = 2,
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
