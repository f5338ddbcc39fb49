// SPDX-License-Identifier: Apache-2.0
// Elements that are written to places which are known before a run, as an assignment to a slice of a tensor is exported.
#include "ops/common/indices.hpp"
#include "runtime/lower/kinds.hpp"

namespace qtn::runtime {
namespace {

/// Neighbours that follow one another, as one.
std::vector<Placement> placements_of(std::span<const std::int64_t> offsets, std::int64_t slice, std::size_t element) {
  std::vector<Placement> placements;
  std::int64_t end = -1;
  for (const std::int64_t offset : offsets) {
    const std::size_t bytes = static_cast<std::size_t>(slice) * element;
    if (offset == end)
      placements.back().bytes += bytes;
    else
      placements.push_back({static_cast<std::size_t>(offset) * element, bytes});
    end = offset + slice;
  }
  return placements;
}

}  // namespace

bool lower_scatter(Lowering &l) {
  if (l.node().op != &ops::kScatterND || l.node().clamp || l.is_8bit(l.output())) return false;
  const Tensor &indices = l.constant_of(l.input(1));
  if (!indices.has_data() || l.node().attrs.get_string("reduction", "none") != "none") return false;
  const qdtype dtype = l.type_of(l.output()).dtype;
  const Shape &shape = l.shape_of(l.output());
  if (dtype_bits(dtype) % 8 != 0 || element_count(shape) == 0) return false;
  std::vector<std::int64_t> offsets;
  try {
    offsets = ops::tuple_offsets(l.node().op->name, indices, shape, 0);
  } catch (const Error &) {
    return false;  // a run says what is wrong
  }
  const auto named = static_cast<std::size_t>(indices.shape().back());
  const std::int64_t slice = element_count(shape, named, shape.size());
  const SlotId x = l.real(l.input(0)), updates = l.real(l.input(2)), y = l.plain_slot(dtype, shape);
  l.add_step(make_placement(x, updates, y, placements_of(offsets, slice, dtype_bits(dtype) / 8)));
  l.set_real(l.output(), y);
  return true;
}

}  // namespace qtn::runtime
