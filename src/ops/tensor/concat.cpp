// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/reshaping.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}};

/// The first input that has elements, if any has.
const Tensor &first_of(const Call &call) {
  const auto at = std::ranges::find_if(call.inputs, [](const Tensor *x) { return x->count() > 0; });
  return at == call.inputs.end() ? *call.in(0) : **at;
}

std::size_t axis_of(const Call &call) {
  if (!call.attrs.has("axis")) fail(QTN_EINVAL, "Concat: attribute \"axis\" is missing");
  return normalize_axis(call.attrs.get_int("axis", 0), first_of(call).rank(), "Concat");
}

/// As in ONNX Runtime, inputs without elements may differ in other axes, too, unless places of the result were theirs.
Types infer(const Call &call) {
  const Tensor &first = first_of(call);
  const std::size_t axis = axis_of(call);
  Shape shape = first.shape();
  shape[axis] = 0;
  for (const Tensor *x : call.inputs)
    if (x->rank() == first.rank()) shape[axis] = add_dims("Concat", shape[axis], x->dim(axis));
  const bool has_places = std::ranges::count(shape, 0) == 0;
  for (const Tensor *x : call.inputs) {
    require_same_dtype("Concat", first, *x);
    const bool one_rank = x->rank() == first.rank();
    Shape other = x->shape();
    if (one_rank) other[axis] = first.dim(axis);
    const bool is_left_out = one_rank && x->count() == 0 && !(has_places && x->dim(axis) > 0);
    if (!is_left_out && !(other == first.shape()))
      fail(QTN_ESHAPE, "Concat: shapes ", to_string(first.shape()), " and ", to_string(x->shape()),
           " differ beside axis ", axis);
  }
  return {{first.dtype(), shape}};
}

/// Calls f(i, the part of y that input i is) for all inputs.
template <class F>
void for_parts(const Call &call, const Tensor &y, F &&f) {
  const std::size_t axis = axis_of(call);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor &x = *call.in(i);
    f(i, y.view(x.shape(), y.strides(), at * y.strides()[axis]));
    at += x.dim(axis);
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  for_parts(call, outputs[0], [&](std::size_t i, const Tensor &part) { copy_elements(part, *call.in(i)); });
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  for_parts(run.call, run.dy[0], [&](std::size_t i, const Tensor &part) {
    if (dx[i].has_data()) copy_elements(dx[i], part);
  });
}

void upgrade(OldNode &node) {
  if (node.opset < 4 && !node.attrs.has("axis")) node.attrs.set("axis", std::int64_t{1});
}

}  // namespace

const OpDef kConcat{.name = "Concat",
                    .min_inputs = 1,
                    .max_inputs = kVariadic,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .any_type = true,
                    .infer = infer,
                    .run = run,
                    .moves = always_moves,
                    .moved = {0, kVariadic},
                    .backward = backward,
                    .joins = true,
                    .upgrade = upgrade};

}  // namespace qtn::ops
