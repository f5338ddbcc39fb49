// SPDX-License-Identifier: Apache-2.0
// Normalization of images and matrices whose channels lie side by side, and of planes by constants. Other planes are
// normalized by the operators' definitions.
#include "ops/common/epsilon.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {
namespace {

/// Where the node's result goes to.
Edge result(Lowering &l, bool side_by_side = true) {
  const Shape &shape = l.shape_of(l.output());
  return l.edge(
      l.real_slot(shape, side_by_side && shape.size() > 2 ? channels_last_strides(shape) : contiguous_strides(shape)));
}

bool lower_batches(Lowering &l, const Edge &x) {
  if (l.node().attrs.get_int("training_mode", 0) != 0) return false;
  const RealNormalization n{l.real_constant(l.input(1)), l.real_constant(l.input(2)), l.real_constant(l.input(3)),
                            l.real_constant(l.input(4)), l.node().attrs.get_float("epsilon", ops::kDefaultEpsilon)};
  for (const Tensor *t : {&n.scale, &n.shift, &n.mean, &n.variance})
    if (!t->has_data()) return false;
  const bool planes = !lies_as_image(x.form);
  const Edge y = result(l, !planes);
  l.add_step((planes ? make_normalize_planes : make_real_normalize)(x, y, n, l.clamp()));
  l.set_real(l.output(), y.slot);
  return true;
}

bool lower_groups(Lowering &l, const Edge &x) {
  const std::int64_t channels = l.shape_of(l.input(0))[1], groups = l.node().attrs.get_int("num_groups", channels);
  const GroupNormalization n{l.real_constant(l.input(1)), l.real_constant(l.input(2)), static_cast<std::size_t>(groups),
                             l.node().attrs.get_float("epsilon", ops::kDefaultEpsilon)};
  if (!n.scale.has_data() || !n.shift.has_data()) return false;
  const Edge y = result(l);
  l.add_step(make_group_normalize(x, y, n, l.clamp()));
  l.set_real(l.output(), y.slot);
  return true;
}

}  // namespace

bool lower_real_normalization(Lowering &l) {
  const ops::OpPtr op = l.node().op;
  const bool batches = op == &ops::kBatchNormalization;
  if (!batches && op != &ops::kGroupNormalization && op != &ops::kInstanceNormalization) return false;
  const SlotId x = l.any_real(l.input(0));
  const Shape &shape = l.form(x).shape, &strides = l.form(x).strides;
  if (l.node().outputs.size() != 1 || element_count(l.shape_of(l.output())) == 0) return false;
  if (batches && shape.size() == 2 && strides[1] == 1 && strides[0] >= shape[1])
    return lower_batches(l, l.edge(l.add_view(x, {{shape[0], shape[1], 1}, {strides[0], 1, 1}, 0})));
  const bool is_image = lies_as_image(l.form(x));
  if (batches && (is_image || (shape.size() > 2 && strides == contiguous_strides(shape))))
    return lower_batches(l, l.edge(x));
  return is_image && !batches && lower_groups(l, l.edge(x));
}

}  // namespace qtn::runtime
