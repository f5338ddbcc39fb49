// SPDX-License-Identifier: Apache-2.0
// DequantizeLinear and QuantizeLinear between plain integers and those of a value on the same grid: bytes are copied.
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {
namespace {

void lower_load(Lowering &l, graph::ValueId v, bool flips) {
  const SlotId from = l.real(l.input(0));
  const Shape &shape = l.shape_of(v), strides = l.grid_strides(v);
  const SlotId y = l.integer_output(v, shape, flips ? contiguous_strides(shape) : strides);
  l.add_step(flips ? make_flip(l.edge(from), l.edge(y), l.isa) : make_copy(l.edge(from), l.edge(y)));
  if (!(l.form(y).strides == strides)) l.set_integer(v, l.copied(y, strides));
}

void lower_store(Lowering &l, graph::ValueId v, bool flips) {
  const SlotId x = l.integer(v), from = flips ? l.contiguous(x) : x;
  const SlotId y = l.plain_slot(l.type_of(l.output()).dtype, l.shape_of(v));
  l.add_step(flips ? make_flip(l.edge(from), l.edge(y), l.isa) : make_copy(l.edge(from), l.edge(y)));
  l.set_real(l.output(), y);
}

}  // namespace

bool lower_edge(Lowering &l) {
  const bool stores = l.node().op == &ops::kQuantizeLinear;
  const graph::ValueId v = stores ? l.input(0) : l.output();
  const bool flips = l.g.value(v).quantizer->dtype() == QTN_INT8;
  stores ? lower_store(l, v, flips) : lower_load(l, v, flips);
  return true;
}

}  // namespace qtn::runtime
