// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"allowzero", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::vector<std::int64_t> wanted = constant_ints("Reshape", "shape", *call.in(1));
  const bool allow_zero = call.attrs.get_int("allowzero", 0) != 0;
  Shape shape(wanted);
  std::size_t inferred = shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (inferred != shape.size()) fail(QTN_EINVAL, "Reshape: more than one dimension is -1 in ", to_string(shape));
      inferred = i;
    } else if (shape[i] == 0 && !allow_zero) {
      if (i >= x.rank()) fail(QTN_ESHAPE, "Reshape: dimension ", i, " is to be copied from x ", to_string(x.shape()));
      shape[i] = x.dim(i);
    } else if (shape[i] < -1) {
      fail(QTN_EINVAL, "Reshape: dimension ", i, " is ", shape[i]);
    }
  }
  const std::int64_t count = x.count();
  if (inferred != shape.size()) {
    shape[inferred] = 1;
    const std::int64_t rest = element_count(shape);
    if (rest == 0 || count % rest != 0)
      fail(QTN_ESHAPE, "Reshape: x ", to_string(x.shape()), " does not fit ", to_string(Shape(wanted)));
    shape[inferred] = count / rest;
  }
  if (element_count(shape) != count)
    fail(QTN_ESHAPE, "Reshape: x ", to_string(x.shape()), " has ", count, " elements, ", to_string(shape), " has ",
         element_count(shape));
  return {{x.dtype(), shape}};
}

void upgrade(OldNode &node) {
  if (node.opset < 5) ints_to_input(node, "shape", 1);
}

}  // namespace

const OpDef kReshape{.name = "Reshape",
                     .min_inputs = 2,
                     .max_inputs = 2,
                     .max_outputs = 1,
                     .attrs = kAttrs,
                     .any_type = true,
                     .infer = infer,
                     .run = run_copy,
                     .moves = always_moves,
                     .backward = backward_copy,
                     .keeps_order = true,
                     .shapes_from = {1, 1},
                     .upgrade = upgrade};

}  // namespace qtn::ops
