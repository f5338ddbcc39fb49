// SPDX-License-Identifier: Apache-2.0
#include "ops/common/axis_gather.hpp"
#include "ops/common/prepared.hpp"
#include "ops/common/reshaping.hpp"
#include "ops/common/unpacked.hpp"

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

struct Sources final : Prepared {
  explicit Sources(const Call &call) : of_axes(call.in(0)->rank()) {
    const Shape &x = call.in(0)->shape(), y = infer(call)[0].shape;
    for (std::size_t axis = 0; axis < x.size(); ++axis)
      for (std::int64_t i = 0; i < y[axis]; ++i) of_axes[axis].push_back(i % x[axis]);
  }
  AxisSources of_axes;
};

void run(const Call &call, std::span<Tensor> outputs) {
  gather_axes(outputs[0], *call.in(0), Ready<Sources>(call)->of_axes, nullptr);
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  if (dx[0].has_data()) scatter_axes(dx[0], run.dy[0], Ready<Sources>(run.call)->of_axes);
}

}  // namespace

const OpDef kTile{.name = "Tile",
                  .min_inputs = 2,
                  .max_inputs = 2,
                  .max_outputs = 1,
                  .attrs = {},
                  .any_type = true,
                  .infer = infer,
                  .run = through_unpacked<run>,
                  .prepare = prepare<Sources>,
                  .moves = always_moves,
                  .backward = backward,
                  .shapes_from = {1, 1}};

}  // namespace qtn::ops
