// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/elementwise.hpp"
#include "ops/infer.hpp"

namespace qtn::ops {
namespace {

// Before opset 13 Softmax ran over all axes from `axis` on as one; "_flatten" is that meaning. No file says it.
constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"_flatten", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Types types = infer_float_unary("Softmax", call);
  if (call.in(0)->rank() > 0) normalize_axis(call.attrs.get_int("axis", -1), call.in(0)->rank(), "Softmax");
  return types;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  const Shape &shape = x.shape();
  const std::size_t rank = shape.size();
  const std::size_t axis = rank == 0 ? 0 : normalize_axis(call.attrs.get_int("axis", -1), rank, "Softmax");
  const bool flatten = rank == 0 || call.attrs.get_int("_flatten", 0) != 0;
  const std::int64_t length = flatten ? element_count(shape, axis, rank) : shape[axis];
  const std::int64_t inner = flatten ? 1 : element_count(shape, axis + 1, rank);
  if (x.count() == 0) return;
  parallel_for(static_cast<std::size_t>(x.count() / length), [&](std::size_t index) {
    const auto i = static_cast<std::int64_t>(index);
    const float *from = x.as<const float>() + i / inner * length * inner + i % inner;
    float *to = outputs[0].as<float>() + (from - x.as<const float>());
    float top = from[0];
    for (std::int64_t k = 1; k < length; ++k) top = std::max(top, from[k * inner]);
    double sum = 0;
    for (std::int64_t k = 0; k < length; ++k) sum += to[k * inner] = std::exp(from[k * inner] - top);
    const float total = static_cast<float>(sum);
    for (std::int64_t k = 0; k < length; ++k) to[k * inner] /= total;
  });
}

void upgrade(OldNode &node) {
  if (node.opset >= 13) return;
  const std::int64_t axis = node.attrs.get_int("axis", 1);
  node.attrs.set("axis", axis);
  if (axis != -1) node.attrs.set("_flatten", std::int64_t{1});
}

}  // namespace

const OpDef kSoftmax{.name = "Softmax",
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .max_outputs = 1,
                     .attrs = kAttrs,
                     .infer = infer,
                     .run = run,
                     .upgrade = upgrade};

}  // namespace qtn::ops
