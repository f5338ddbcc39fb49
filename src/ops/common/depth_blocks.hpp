// SPDX-License-Identifier: Apache-2.0
// DepthToSpace and SpaceToDepth copy between two views of six axes: [n][c][row][row of block][column][column of block].
#pragma once

#include "ops/common/reshaping.hpp"

namespace qtn::ops {

/// An image as blocks of `size` by `size` pixels.
inline Tensor blocks_of_space(const Tensor &t, std::int64_t size) {
  const Shape &s = t.strides();
  return t.view({t.dim(0), t.dim(1), t.dim(2) / size, size, t.dim(3) / size, size},
                {s[0], s[1], s[2] * size, s[2], s[3] * size, s[3]});
}

/// Channels as blocks of pixels: the place in the block is their outer part (DCR), or their inner part (CRD).
inline Tensor blocks_of_depth(const Tensor &t, std::int64_t size, bool inner) {
  const std::int64_t channels = t.dim(1) / size / size;
  const Shape &s = t.strides();
  const std::int64_t channel = inner ? size * size : 1, column = inner ? 1 : channels;
  return t.view({t.dim(0), channels, t.dim(2), size, t.dim(3), size},
                {s[0], s[1] * channel, s[2], s[1] * column * size, s[3], s[1] * column});
}

/// The attribute mode: whether blocks are the inner part of channels.
inline bool inner_blocks(const char *op, const Attrs &attrs) {
  const std::string mode = attrs.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") fail(QTN_EINVAL, op, ": mode is \"", mode, "\", not DCR or CRD");
  return mode == "CRD";
}

/// The attribute blocksize, for an image x.
inline std::int64_t block_size(const char *op, const Call &call) {
  const Shape &x = call.in(0)->shape();
  if (x.size() != 4) fail(QTN_ESHAPE, op, ": x must have 4 axes, it is ", to_string(x));
  if (!call.attrs.has("blocksize")) fail(QTN_EINVAL, op, ": attribute \"blocksize\" is missing");
  const std::int64_t size = call.attrs.get_int("blocksize", 0);
  if (size < 1) fail(QTN_EINVAL, op, ": blocksize is ", size);
  return size;
}

}  // namespace qtn::ops
