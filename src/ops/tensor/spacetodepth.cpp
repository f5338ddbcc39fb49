// SPDX-License-Identifier: Apache-2.0
#include "ops/common/depth_blocks.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"blocksize", AttrSpec::kInt}, {"mode", AttrSpec::kString}};

bool inner(const Attrs &attrs) { return inner_blocks("SpaceToDepth", attrs); }

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::int64_t size = block_size("SpaceToDepth", call);
  inner(call.attrs);
  if (x.dim(2) % size != 0 || x.dim(3) % size != 0)
    fail(QTN_ESHAPE, "SpaceToDepth: x ", to_string(x.shape()), " is not made of blocks of ", size, " by ", size);
  const std::int64_t channels = mul_dims("SpaceToDepth", mul_dims("SpaceToDepth", x.dim(1), size), size);
  return {{x.dtype(), {x.dim(0), channels, x.dim(2) / size, x.dim(3) / size}}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const std::int64_t size = block_size("SpaceToDepth", call);
  copy_elements(blocks_of_depth(outputs[0], size, inner(call.attrs)), blocks_of_space(*call.in(0), size));
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const std::int64_t size = block_size("SpaceToDepth", run.call);
  if (dx[0].has_data())
    copy_elements(blocks_of_space(dx[0], size), blocks_of_depth(run.dy[0], size, inner(run.call.attrs)));
}

}  // namespace

const OpDef kSpaceToDepth{.name = "SpaceToDepth",
                          .min_inputs = 1,
                          .max_inputs = 1,
                          .max_outputs = 1,
                          .attrs = kAttrs,
                          .any_type = true,
                          .infer = infer,
                          .run = run,
                          .moves = always_moves,
                          .backward = backward};

}  // namespace qtn::ops
