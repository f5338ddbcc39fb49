// SPDX-License-Identifier: Apache-2.0
// Copying elements between any strides: loops are merged where both sides step alike, and the innermost runs in one
// piece.
#include <cstring>
#include <type_traits>

#include "base/error.hpp"
#include "core/tensor.hpp"

namespace qtn {
namespace {

struct Loop {
  std::int64_t count, dst_step, src_step;
};

struct Nest {
  std::array<Loop, kMaxRank> loops;
  std::size_t depth = 0;
};

/// Loops in the order of dst's strides, outermost first, adjacent ones merged.
Nest plan(const Shape &shape, const Shape &dst, const Shape &src) {
  Nest nest;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    // Sorted as it goes: std::stable_sort() would allocate.
    std::size_t at = nest.depth++;
    for (; at > 0 && std::abs(nest.loops[at - 1].dst_step) < std::abs(dst[i]); --at)
      nest.loops[at] = nest.loops[at - 1];
    nest.loops[at] = {shape[i], dst[i], src[i]};
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < nest.depth; ++i) {
    const Loop &loop = nest.loops[i];
    if (kept > 0) {
      Loop &outer = nest.loops[kept - 1];
      if (outer.dst_step == loop.dst_step * loop.count && outer.src_step == loop.src_step * loop.count) {
        outer = {outer.count * loop.count, loop.dst_step, loop.src_step};
        continue;
      }
    }
    nest.loops[kept++] = loop;
  }
  nest.depth = kept;
  return nest;
}

template <class T>
void copy_run(T *dst, const T *src, const Loop &loop) {
  if (loop.dst_step == 1 && loop.src_step == 1) {
    std::memcpy(dst, src, static_cast<std::size_t>(loop.count) * sizeof(T));
    return;
  }
  for (std::int64_t i = 0; i < loop.count; ++i) dst[i * loop.dst_step] = src[i * loop.src_step];
}

/// dst[i][0..ways) = src[0..ways)[i]: the channels of a shuffle. A constant number of ways is what vectors need.
template <int ways, class T>
void interleave(T *dst, const T *src, std::int64_t count, std::int64_t src_step) {
  for (std::int64_t i = 0; i < count; ++i)
    for (int way = 0; way < ways; ++way) dst[i * ways + way] = src[i + way * src_step];
}

/// dst[i * dst_step + j] = src[i + j * src_step], four by four.
void transpose_block(std::uint32_t *dst, std::int64_t dst_step, const std::uint32_t *src, std::int64_t src_step,
                     std::int64_t rows, std::int64_t columns) {
  using Quad [[gnu::vector_size(16)]] = std::uint32_t;
  const auto one_by_one = [&](std::int64_t i, std::int64_t row_end, std::int64_t first, std::int64_t end) {
    for (; i < row_end; ++i)
      for (std::int64_t j = first; j < end; ++j) dst[i * dst_step + j] = src[i + j * src_step];
  };
  const std::int64_t whole_rows = rows - rows % 4, whole_columns = columns - columns % 4;
  for (std::int64_t i = 0; i < whole_rows; i += 4)
    for (std::int64_t j = 0; j < whole_columns; j += 4) {
      Quad v[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) std::memcpy(&v[k], src + i + (j + k) * src_step, sizeof v[k]);
      const Quad low = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5),
                 high = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
      const Quad low2 = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5),
                 high2 = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
      v[0] = __builtin_shufflevector(low, low2, 0, 1, 4, 5);
      v[1] = __builtin_shufflevector(low, low2, 2, 3, 6, 7);
      v[2] = __builtin_shufflevector(high, high2, 0, 1, 4, 5);
      v[3] = __builtin_shufflevector(high, high2, 2, 3, 6, 7);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) std::memcpy(dst + (i + k) * dst_step + j, &v[k], sizeof v[k]);
    }
  one_by_one(0, whole_rows, whole_columns, columns);
  one_by_one(whole_rows, rows, 0, columns);
}

// A transposed pair of inner loops is walked in blocks, so that both sides stay in cache.
template <class T>
void copy_plane(T *dst, const T *src, const Loop &outer, const Loop &inner) {
  constexpr std::int64_t kBlock = 64;
  if (outer.src_step == 1 && inner.dst_step == 1 && outer.dst_step == inner.count) {
    if (inner.count == 2) return interleave<2>(dst, src, outer.count, inner.src_step);
    if (inner.count == 3) return interleave<3>(dst, src, outer.count, inner.src_step);
    if (inner.count == 4) return interleave<4>(dst, src, outer.count, inner.src_step);
  }
  if (inner.src_step == 1 || outer.src_step != 1) {
    for (std::int64_t i = 0; i < outer.count; ++i) copy_run(dst + i * outer.dst_step, src + i * outer.src_step, inner);
    return;
  }
  for (std::int64_t i = 0; i < outer.count; i += kBlock)
    for (std::int64_t j = 0; j < inner.count; j += kBlock) {
      if constexpr (std::is_same_v<T, std::uint32_t>)
        if (inner.dst_step == 1) {
          transpose_block(dst + i * outer.dst_step + j, outer.dst_step, src + i + j * inner.src_step, inner.src_step,
                          std::min(kBlock, outer.count - i), std::min(kBlock, inner.count - j));
          continue;
        }
      const Loop block{std::min(kBlock, inner.count - j), inner.dst_step, inner.src_step};
      for (std::int64_t k = i; k < std::min(i + kBlock, outer.count); ++k)
        copy_run(dst + k * outer.dst_step + j * inner.dst_step, src + k * outer.src_step + j * inner.src_step, block);
    }
}

template <class T>
void copy_nest(T *dst, const T *src, const Nest &nest, std::size_t level) {
  const std::size_t left = nest.depth - level;
  if (left == 0) {
    *dst = *src;
  } else if (left == 1) {
    copy_run(dst, src, nest.loops[level]);
  } else if (left == 2) {
    copy_plane(dst, src, nest.loops[level], nest.loops[level + 1]);
  } else {
    const Loop &loop = nest.loops[level];
    for (std::int64_t i = 0; i < loop.count; ++i)
      copy_nest(dst + i * loop.dst_step, src + i * loop.src_step, nest, level + 1);
  }
}

void copy_packed(const Tensor &dst, const Tensor &src) {
  const PackedSpan to = dst.packed(), from = src.packed();
  const Nest nest = plan(dst.shape(), dst.strides(), src.strides());
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t to_offset = 0, from_offset = 0;
  for (std::int64_t left = dst.count(); left > 0; --left) {
    to.store(to_offset, from.load(from_offset));
    for (std::size_t d = nest.depth; d-- > 0;) {
      const Loop &loop = nest.loops[d];
      to_offset += loop.dst_step;
      from_offset += loop.src_step;
      if (++index[d] < loop.count) break;
      to_offset -= loop.dst_step * loop.count;
      from_offset -= loop.src_step * loop.count;
      index[d] = 0;
    }
  }
}

}  // namespace

void copy_elements(const Tensor &dst, const Tensor &src) {
  if (dst.shape() != src.shape())
    fail(QTN_ESHAPE, "copy: shapes ", to_string(dst.shape()), " and ", to_string(src.shape()), " differ");
  if (dst.dtype() != src.dtype())
    fail(QTN_EDTYPE, "copy: dtypes ", dtype_name(dst.dtype()), " and ", dtype_name(src.dtype()), " differ");
  if (dst.count() == 0) return;
  if (is_packed(dst.dtype())) return copy_packed(dst, src);
  const Nest nest = plan(dst.shape(), dst.strides(), src.strides());
  switch (dtype_size(dst.dtype())) {
    case 1:
      return copy_nest(dst.as<std::uint8_t>(), src.as<const std::uint8_t>(), nest, 0);
    case 2:
      return copy_nest(dst.as<std::uint16_t>(), src.as<const std::uint16_t>(), nest, 0);
    case 4:
      return copy_nest(dst.as<std::uint32_t>(), src.as<const std::uint32_t>(), nest, 0);
    default:
      return copy_nest(dst.as<std::uint64_t>(), src.as<const std::uint64_t>(), nest, 0);
  }
}

}  // namespace qtn
