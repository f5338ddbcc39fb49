// SPDX-License-Identifier: Apache-2.0
// Copying elements between any strides: loops are merged where both sides step alike, and the innermost runs in one
// piece.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "core/tensor.hpp"

namespace qtn {
namespace {

struct Loop {
  std::int64_t count, dst_step, src_step;
};

struct Nest {
  std::array<Loop, kMaxRank> loops;
  std::size_t depth = 0;

  /// Takes the loop along neighbours of src to the innermost two, where neither of these goes along them.
  void join_neighbours() {
    if (depth < 3 || loops[depth - 1].src_step == 0) return;
    const auto is_along = [](const Loop &loop) { return loop.src_step == 1; };
    const auto end = loops.begin() + static_cast<std::ptrdiff_t>(depth), outer = end - 2;
    const auto along = std::find_if(loops.begin(), end, is_along);
    if (along < outer) std::rotate(along, along + 1, outer + 1);
  }

  /// Whether all that a loop writes is what its first round writes, and there is nothing between.
  bool repeats_without_gaps(std::size_t level) const {
    if (loops[level].src_step != 0) return false;
    std::int64_t step = 1;
    for (std::size_t inner = depth; inner-- > level; step *= loops[inner].count)
      if (loops[inner].dst_step != step) return false;
    return true;
  }

  /// Whether elements come in pairs, which then may be taken for one.
  bool has_pairs() const {
    if (depth < 2 || loops[depth - 1].count != 2 || loops[depth - 1].dst_step != 1 || loops[depth - 1].src_step != 1)
      return false;
    return std::all_of(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(depth) - 1,
                       [](const Loop &loop) { return loop.dst_step % 2 == 0 && loop.src_step % 2 == 0; });
  }
  Nest of_pairs() const {
    Nest nest = *this;
    --nest.depth;
    for (std::size_t i = 0; i < nest.depth; ++i) nest.loops[i].dst_step /= 2, nest.loops[i].src_step /= 2;
    return nest;
  }
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
  nest.join_neighbours();
  return nest;
}

template <class T>
void copy_run(T *dst, const T *src, const Loop &loop) {
  if (loop.dst_step == 1 && loop.src_step == 1) {
    std::memcpy(dst, src, static_cast<std::size_t>(loop.count) * sizeof(T));
    return;
  }
  if (loop.dst_step == 1 && loop.src_step == 0) return void(std::fill_n(dst, loop.count, *src));
  for (std::int64_t i = 0; i < loop.count; ++i) dst[i * loop.dst_step] = src[i * loop.src_step];
}

/// Elements of a and b in turn, from the first half of both or from the second.
template <bool second, class Vector, std::size_t... i>
Vector interleaved(Vector a, Vector b, std::index_sequence<i...>) {
  constexpr std::size_t kCount = sizeof...(i), kFirst = second ? kCount / 2 : 0;
  return __builtin_shufflevector(a, b, static_cast<int>(kFirst + i / 2 + i % 2 * kCount)...);
}

/// The vectors of so many rows of a shuffle, element by element.
template <class Vector, std::size_t... i>
void shuffle(Vector (&v)[2], std::index_sequence<i...> each) {
  const Vector low = interleaved<false>(v[0], v[1], each), high = interleaved<true>(v[0], v[1], each);
  v[0] = low, v[1] = high;
}
template <class Vector, std::size_t... i>
void shuffle(Vector (&v)[4], std::index_sequence<i...> each) {
  Vector even[2] = {v[0], v[2]}, odd[2] = {v[1], v[3]};
  shuffle(even, each);
  shuffle(odd, each);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    Vector pair[2] = {even[half], odd[half]};
    shuffle(pair, each);
    v[2 * half] = pair[0], v[2 * half + 1] = pair[1];
  }
}
/// Colours of four pixels.
template <class Vector>
void shuffle(Vector (&v)[3], std::make_index_sequence<4>) {
  const Vector a = v[0], b = v[1], c = v[2];
  v[0] = __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 4, 1, 5), c, 0, 1, 4, 2);
  v[1] = __builtin_shufflevector(__builtin_shufflevector(b, c, 1, 5, 2, 6), a, 0, 1, 6, 2);
  v[2] = __builtin_shufflevector(c, __builtin_shufflevector(a, b, 3, 7, 3, 7), 2, 4, 5, 3);
}

/// dst[i][0..ways) = src[0..ways)[i]: the channels of a shuffle.
template <int ways, class T>
void interleave(T *dst, const T *src, std::int64_t count, std::int64_t src_step) {
  using Vector [[gnu::vector_size(16)]] = T;
  constexpr std::int64_t kCount = 16 / sizeof(T);
  std::int64_t i = 0;
  if constexpr (ways != 3 || kCount == 4)
    for (; i + kCount <= count; i += kCount) {
      Vector v[ways];
#pragma GCC unroll 4
      for (int way = 0; way < ways; ++way) std::memcpy(&v[way], src + i + way * src_step, sizeof v[way]);
      shuffle(v, std::make_index_sequence<kCount>());
      std::memcpy(dst + i * ways, v, sizeof v);
    }
  for (; i < count; ++i)
    for (int way = 0; way < ways; ++way) dst[i * ways + way] = src[i + way * src_step];
}

/// dst[i * dst_step + j] = src[i + j * src_step], in squares of vectors.
template <class T>
void transpose_block(T *dst, std::int64_t dst_step, const T *src, std::int64_t src_step, std::int64_t rows,
                     std::int64_t columns) {
  using Vector [[gnu::vector_size(16)]] = T;
  constexpr std::int64_t kSide = 16 / sizeof(T);
  constexpr auto kEach = std::make_index_sequence<kSide>();
  const auto one_by_one = [&](std::int64_t i, std::int64_t row_end, std::int64_t first, std::int64_t end) {
    for (; i < row_end; ++i)
      for (std::int64_t j = first; j < end; ++j) dst[i * dst_step + j] = src[i + j * src_step];
  };
  const std::int64_t whole_rows = rows - rows % kSide, whole_columns = columns - columns % kSide;
  for (std::int64_t i = 0; i < whole_rows; i += kSide)
    for (std::int64_t j = 0; j < whole_columns; j += kSide) {
      Vector v[kSide], next[kSide];
#pragma GCC unroll 16
      for (int k = 0; k < kSide; ++k) std::memcpy(&v[k], src + i + (j + k) * src_step, sizeof v[k]);
        // Each round moves a bit of the row's number to that of the column.
#pragma GCC unroll 4
      for (int round = 1; round < kSide; round *= 2) {
#pragma GCC unroll 8
        for (int k = 0; k < kSide / 2; ++k) {
          next[2 * k] = interleaved<false>(v[k], v[k + kSide / 2], kEach);
          next[2 * k + 1] = interleaved<true>(v[k], v[k + kSide / 2], kEach);
        }
#pragma GCC unroll 16
        for (int k = 0; k < kSide; ++k) v[k] = next[k];
      }
#pragma GCC unroll 16
      for (int k = 0; k < kSide; ++k) std::memcpy(dst + (i + k) * dst_step + j, &v[k], sizeof v[k]);
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
  if (inner.src_step == 1 || inner.src_step == 0 || outer.src_step != 1) {
    for (std::int64_t i = 0; i < outer.count; ++i) copy_run(dst + i * outer.dst_step, src + i * outer.src_step, inner);
    return;
  }
  for (std::int64_t i = 0; i < outer.count; i += kBlock)
    for (std::int64_t j = 0; j < inner.count; j += kBlock) {
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

/// Elements of dst without gaps from the given loop on, the first `period` of which repeat.
template <class T>
void repeat(T *dst, std::int64_t period, std::int64_t count) {
  for (std::int64_t done = period; done < count; done *= 2)
    std::memcpy(dst + done, dst, static_cast<std::size_t>(std::min(done, count - done)) * sizeof(T));
}

template <class T>
void copy_nest(T *dst, const T *src, const Nest &nest, std::size_t level) {
  const std::size_t left = nest.depth - level;
  if (left > 0 && nest.repeats_without_gaps(level)) {
    const Loop &loop = nest.loops[level];
    copy_nest(dst, src, nest, level + 1);
    return repeat(dst, loop.dst_step, loop.dst_step * loop.count);
  }
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

/// All of them; large ones on several threads, along the outermost loop.
template <class T>
void copy_all(T *dst, const T *src, const Nest &nest, std::size_t bytes) {
  constexpr std::size_t kBytes = 128 << 10;  // for a thread
  const std::size_t lanes = bytes / kBytes;
  if (lanes < 2 || nest.depth == 0 || nest.repeats_without_gaps(0)) return copy_nest(dst, src, nest, 0);
  const Loop &outer = nest.loops[0];
  parallel_ranges(lanes, static_cast<std::size_t>(outer.count), [&](std::size_t begin, std::size_t end, std::size_t) {
    const auto first = static_cast<std::int64_t>(begin);
    Nest part = nest;
    part.loops[0].count = static_cast<std::int64_t>(end) - first;
    copy_nest(dst + first * outer.dst_step, src + first * outer.src_step, part, 0);
  });
}

/// Packed elements, by way of bytes where they come in runs: `outer` goes along neighbours of src, `inner` along those
/// of dst.
void transpose_packed(const PackedSpan &to, std::int64_t to_at, const PackedSpan &from, std::int64_t from_at,
                      const Loop &outer, const Loop &inner) {
  constexpr std::int64_t kBlock = 128;
  std::uint8_t columns[kBlock * kBlock], rows[kBlock * kBlock];
  for (std::int64_t i = 0; i < outer.count; i += kBlock)
    for (std::int64_t j = 0; j < inner.count; j += kBlock) {
      const std::int64_t height = std::min(kBlock, outer.count - i), width = std::min(kBlock, inner.count - j);
      for (std::int64_t k = 0; k < width; ++k)
        from.load_run(from_at + i + (j + k) * inner.src_step, height,
                      reinterpret_cast<std::int8_t *>(columns) + k * kBlock);
      transpose_block(rows, kBlock, columns, kBlock, height, width);
      for (std::int64_t k = 0; k < height; ++k)
        to.store_run(to_at + (i + k) * outer.dst_step + j, width, reinterpret_cast<std::int8_t *>(rows) + k * kBlock);
    }
}

void copy_packed_run(const PackedSpan &to, std::int64_t to_at, const PackedSpan &from, std::int64_t from_at,
                     std::int64_t count) {
  constexpr std::int64_t kBlock = 4096;
  std::int8_t bytes[kBlock];
  for (std::int64_t done = 0; done < count; done += kBlock) {
    const std::int64_t size = std::min(kBlock, count - done);
    from.load_run(from_at + done, size, bytes);
    to.store_run(to_at + done, size, bytes);
  }
}

void copy_packed(const PackedSpan &to, std::int64_t to_at, const PackedSpan &from, std::int64_t from_at,
                 const Nest &nest, std::size_t level) {
  const std::size_t left = nest.depth - level;
  if (left == 0) return to.store(to_at, from.load(from_at));
  const Loop &loop = nest.loops[level];
  if (left == 1 && loop.dst_step == 1 && loop.src_step == 1)
    return copy_packed_run(to, to_at, from, from_at, loop.count);
  if (left == 2 && loop.src_step == 1 && nest.loops[level + 1].dst_step == 1)
    return transpose_packed(to, to_at, from, from_at, loop, nest.loops[level + 1]);
  for (std::int64_t i = 0; i < loop.count; ++i)
    copy_packed(to, to_at + i * loop.dst_step, from, from_at + i * loop.src_step, nest, level + 1);
}

}  // namespace

void copy_elements(const Tensor &dst, const Tensor &src) {
  if (dst.shape() != src.shape())
    fail(QTN_ESHAPE, "copy: shapes ", to_string(dst.shape()), " and ", to_string(src.shape()), " differ");
  if (dst.dtype() != src.dtype())
    fail(QTN_EDTYPE, "copy: dtypes ", dtype_name(dst.dtype()), " and ", dtype_name(src.dtype()), " differ");
  if (dst.count() == 0) return;
  Nest nest = plan(dst.shape(), dst.strides(), src.strides());
  if (is_packed(dst.dtype())) return copy_packed(dst.packed(), 0, src.packed(), 0, nest, 0);
  std::size_t size = dtype_size(dst.dtype());
  const auto place = reinterpret_cast<std::uintptr_t>(dst.data()) | reinterpret_cast<std::uintptr_t>(src.data());
  for (; size < sizeof(std::uint64_t) && nest.has_pairs() && place % (2 * size) == 0; size *= 2) nest = nest.of_pairs();
  const auto copy = [&](auto zero) {
    using T = decltype(zero);
    copy_all(dst.as<T>(), src.as<const T>(), nest, dst.nbytes());
  };
  switch (size) {
    case 1:
      return copy(std::uint8_t{});
    case 2:
      return copy(std::uint16_t{});
    case 4:
      return copy(std::uint32_t{});
    default:
      return copy(std::uint64_t{});
  }
}

}  // namespace qtn
