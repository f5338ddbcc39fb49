// SPDX-License-Identifier: Apache-2.0
// DequantizeLinear and QuantizeLinear between plain integers and those of a value on the same grid: bytes are copied.
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {
namespace {

/// Kernels know uint8 only, so that int8 is moved up by 128, or down.
void add_bytes(Lowering &l, SlotId from, SlotId to, bool flips) {
  l.add_step(flips ? make_flip(l.edge(from), l.edge(to), l.isa) : make_copy(l.edge(from), l.edge(to)));
}

void lower_load(Lowering &l, graph::ValueId v, bool flips) {
  const Shape &shape = l.shape_of(v), strides = l.grid_strides(v);
  const SlotId y = l.integer_output(v, shape, flips ? contiguous_strides(shape) : strides);
  add_bytes(l, l.real(l.input(0)), y, flips);
  if (!(l.form(y).strides == strides)) l.set_integer(v, l.copied(y, strides));
}

void lower_store(Lowering &l, graph::ValueId v, bool flips) {
  const SlotId x = l.integer(v), y = l.plain_slot(l.type_of(l.output()).dtype, l.shape_of(v));
  add_bytes(l, flips ? l.contiguous(x) : x, y, flips);
  l.set_real(l.output(), y);
}

}  // namespace

bool lower_edge(Lowering &l) {
  const bool stores = l.node().op->coding == ops::Coding::to_integers;
  const graph::ValueId v = stores ? l.input(0) : l.output();
  const bool flips = l.g.value(v).quantizer->dtype() == QTN_INT8;
  stores ? lower_store(l, v, flips) : lower_load(l, v, flips);
  return true;
}

}  // namespace qtn::runtime
