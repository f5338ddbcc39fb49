// SPDX-License-Identifier: Apache-2.0
#include "ops/common/depth_blocks.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"blocksize", AttrSpec::kInt}, {"mode", AttrSpec::kString}};

bool inner(const Attrs &attrs) { return inner_blocks("DepthToSpace", attrs); }

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::int64_t size = block_size("DepthToSpace", call);
  inner(call.attrs);
  if (x.dim(1) % size != 0 || x.dim(1) / size % size != 0)
    fail(QTN_ESHAPE, "DepthToSpace: ", x.dim(1), " channels are not made of blocks of ", size, " by ", size);
  return {{x.dtype(),
           {x.dim(0), x.dim(1) / size / size, mul_dims("DepthToSpace", x.dim(2), size),
            mul_dims("DepthToSpace", x.dim(3), size)}}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const std::int64_t size = block_size("DepthToSpace", call);
  copy_elements(blocks_of_space(outputs[0], size), blocks_of_depth(*call.in(0), size, inner(call.attrs)));
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const std::int64_t size = block_size("DepthToSpace", run.call);
  if (dx[0].has_data())
    copy_elements(blocks_of_depth(dx[0], size, inner(run.call.attrs)), blocks_of_space(run.dy[0], size));
}

}  // namespace

const OpDef kDepthToSpace{.name = "DepthToSpace",
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
