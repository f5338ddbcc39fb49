// SPDX-License-Identifier: Apache-2.0
// Products of floats that come to integers in the run: each row, or each block of one, on a grid of its own.
#include <array>

#include "ops/common/matmulnbits.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {

using graph::kNoValue;
using graph::ValueId;

namespace {

/// Rows of k elements; made once for all nodes that read x.
DynamicOperand on_own_grid(Lowering &l, ValueId x, std::int64_t k) {
  const ops::OwnGrid grid = ops::own_grid(l.node().op->name, l.node().attrs);
  const auto [entry, is_new] = l.own_grids.try_emplace({x, grid});
  if (is_new) {
    const std::int64_t rows = element_count(l.shape_of(x)) / k;
    entry->second = {l.real(x),
                     l.plain_slot(QTN_UINT8, l.shape_of(x)),
                     l.plain_slot(QTN_FLOAT32, {rows}),
                     l.plain_slot(QTN_INT32, {rows}),
                     static_cast<std::size_t>(rows),
                     static_cast<std::size_t>(k)};
    l.add_step(make_dynamic_quantize(l.node().op->name, entry->second, grid, l.isa));
  }
  return entry->second;
}

/// Rows in 8 bits; made once for all nodes that read x in such blocks.
BlocksOperand in_blocks(Lowering &l, ValueId x, const kernels::BlocksForm &form) {
  const auto [entry, is_new] = l.in_blocks.try_emplace({x, form.block});
  if (is_new) {
    const std::int64_t rows = element_count(l.shape_of(x)) / static_cast<std::int64_t>(form.k);
    const auto slot = [&](qdtype dtype, std::size_t columns) {
      const Shape shape{rows, static_cast<std::int64_t>(columns)};
      return l.add_slot({dtype, shape, contiguous_strides(shape), nullptr});
    };
    entry->second = {l.real(x), slot(QTN_INT8, form.row_bytes()), slot(QTN_FLOAT32, form.blocks()),
                     slot(QTN_INT32, form.blocks()), static_cast<std::size_t>(rows)};
    l.add_step(make_block_quantize(entry->second, form, l.isa));
  }
  return entry->second;
}

}  // namespace

bool lower_dynamic_product(Lowering &l) {
  const ValueId x = l.input(0), y = l.output();
  std::array<Tensor, 4> constants;
  for (std::size_t i = 0; i < constants.size(); ++i)
    if (l.input(i + 1) != kNoValue) constants[i] = l.g.value(l.input(i + 1)).constant;
  const auto &[weight, scales, zero, bias] = constants;
  const DynamicOperand operand = on_own_grid(l, x, weight.dim(0));
  const DynamicProduct product{l.plain_slot(QTN_FLOAT32, l.shape_of(y)), l.plain_slot(QTN_FLOAT32, {weight.dim(1)}),
                               l.plain_slot(QTN_INT32, {static_cast<std::int64_t>(operand.rows)})};
  l.add_step(
      make_dynamic_product(operand, product, {weight, scales, zero, bias}, l.node().clamp, l.isa, l.pack_cache()));
  l.set_real(y, product.y);
  return true;
}

/// MatMulNBits whose activations become integers.
bool lower_blocks(Lowering &l) {
  if (l.node().op != &ops::kMatMulNBits || element_count(l.shape_of(l.input(0))) == 0) return false;
  for (std::size_t i = 1; i < l.node().inputs.size(); ++i)
    if (l.input(i) != kNoValue && !l.constant_of(l.input(i)).has_data()) return false;
  std::vector<Tensor> storage;
  const std::vector<const Tensor *> operands = l.constant_operands(storage);
  const ops::Call call{l.node().attrs, operands};
  if (!ops::multiplies_bytes(call)) return false;
  const BlocksOperand x = in_blocks(l, l.input(0), ops::nbits_form(call));
  const Shape &shape = l.shape_of(l.output());
  const SlotId y = l.real_slot(shape, contiguous_strides(shape));
  l.add_step(make_block_product(x, l.edge(y), call, l.clamp(), l.isa, l.pack_cache()));
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
