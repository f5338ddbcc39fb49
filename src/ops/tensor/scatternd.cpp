// SPDX-License-Identifier: Apache-2.0
#include "ops/common/indices.hpp"
#include "ops/common/scatter.hpp"
#include "ops/common/widened.hpp"

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
  const Tensor &indices = *call.in(1), &y = outputs[0];
  const std::vector<std::int64_t> offsets = tuple_offsets(kName, indices, y.shape(), 0);
  const std::int64_t slice = element_count(y.shape(), static_cast<std::size_t>(indices.shape().back()), y.rank());
  copy_elements(y, *call.in(0));
  scatter_into(call, y, *call.in(2), [&](auto *to, const auto *from, auto &&f) {
    for (const std::int64_t offset : offsets)
      for (auto *at = to + offset, *end = at + slice; at != end; ++at) *at = f(*at, *from++);
  });
}

}  // namespace

const OpDef kScatterND{.name = kName,
                       .min_inputs = 3,
                       .max_inputs = 3,
                       .max_outputs = 1,
                       .attrs = kAttrs,
                       .infer = infer_widened<infer>,
                       .run = run_widened<run>};

}  // namespace qtn::ops
