// SPDX-License-Identifier: Apache-2.0
#include "ops/axis_gather.hpp"
#include "ops/reshaping.hpp"

namespace qtn::ops {
namespace {

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::vector<std::int64_t> repeats = constant_ints("Tile", "repeats", *call.in(1));
  if (repeats.size() != x.rank())
    fail(QTN_EINVAL, "Tile: repeats has ", repeats.size(), " values, x is ", to_string(x.shape()));
  Shape shape = x.shape();
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) fail(QTN_EINVAL, "Tile: axis ", i, " is repeated ", repeats[i], " times");
    shape[i] = mul_dims("Tile", shape[i], repeats[i]);
  }
  return {{x.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  if (y.count() == 0) return;
  AxisSources sources(x.rank());
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    for (std::int64_t i = 0; i < y.dim(axis); ++i) sources[axis].push_back(i % x.dim(axis));
  gather_axes(y, x, sources, nullptr);
}

}  // namespace

const OpDef kTile{.name = "Tile",
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .max_outputs = 1,
                  .attrs = {},
                  .infer = infer,
                  .run = run,
                  .moves = always_moves};

}  // namespace qtn::ops
