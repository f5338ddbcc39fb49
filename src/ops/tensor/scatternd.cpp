// SPDX-License-Identifier: Apache-2.0
#include "ops/common/contiguous.hpp"
#include "ops/common/indices.hpp"
#include "ops/common/scatter.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"reduction", AttrSpec::kString}};
constexpr const char *kName = "ScatterND";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &indices = *call.in(1), &updates = *call.in(2);
  check_scatter(kName, call);
  const std::int64_t length = indices.rank() == 0 ? -1 : indices.shape().back();
  if (length < 0 || length > static_cast<std::int64_t>(x.rank()))
    fail(QTN_ESHAPE, kName, ": indices ", to_string(indices.shape()), " name no places of x ", to_string(x.shape()));
  Shape shape = indices.shape();
  shape.erase(shape.size() - 1);
  for (auto i = static_cast<std::size_t>(length); i < x.rank(); ++i) shape.push_back(x.dim(i));
  if (!(updates.shape() == shape))
    fail(QTN_ESHAPE, kName, ": updates are ", to_string(updates.shape()), ", of indices ", to_string(indices.shape()),
         " and x ", to_string(x.shape()), " follows ", to_string(shape));
  return {{x.dtype(), x.shape()}};
}

// One after the other: several may meet in one element.
void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &indices = *call.in(1);
  const Tensor updates = call.in(2)->to_contiguous();
  const std::vector<std::int64_t> offsets = tuple_offsets(kName, indices, x.shape(), 0);
  const std::int64_t slice = element_count(x.shape(), static_cast<std::size_t>(indices.shape().back()), x.rank());
  through_contiguous(outputs[0], [&](const Tensor &y) {
    copy_elements(y, x);
    const Scattering scattering(call, y, updates);
    if (slice == 1) return scattering.elements(offsets, 0);
    std::int64_t from = 0;
    for (const std::int64_t offset : offsets) {
      scattering.row(offset, from, slice);
      from += slice;
    }
  });
}

}  // namespace

const OpDef kScatterND{.name = kName,
                       .min_inputs = 3,
                       .max_inputs = 3,
                       .max_outputs = 1,
                       .attrs = kAttrs,
                       .infer = infer,
                       .run = run,
                       .moves = scatter_moves,
                       .moved = {0, 2, 2}};

}  // namespace qtn::ops
