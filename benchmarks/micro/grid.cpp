// SPDX-License-Identifier: Apache-2.0
// Beside every kernel stands the copy that memory allows: the same bytes read and written, by the widest vectors and,
// for large tensors, around the caches.
#include "kernels/grid/grid.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

using kernels::Cell;
using kernels::GridPer;

struct Shape {
  const char *name;
  std::size_t rows, columns;
  GridPer per;
};

constexpr Shape kShapes[] = {
    {"tensor_16K", 1, 16 << 10, GridPer::array},   {"tensor_128K", 1, 128 << 10, GridPer::array},
    {"tensor_16M", 1, 16 << 20, GridPer::array},   {"row_256x512", 256, 512, GridPer::row},
    {"column_256x512", 256, 512, GridPer::column}, {"block_4096x32", 4096, 32, GridPer::row}};

struct Type {
  const char *name;
  Cell cell;
};

constexpr Type kTypes[] = {
    {"i8", Cell::i8}, {"u8", Cell::u8}, {"i16", Cell::i16}, {"i32", Cell::i32}, {"i4", Cell::i4}};

struct Grids {
  explicit Grids(const Shape &s, Cell cell)
      : factor(s.rows > s.columns ? s.rows : s.columns, 0.7f),
        zero(factor.size(), cell == Cell::i32 ? 0 : 3),
        bits(kernels::cell_bits(cell)) {}
  std::int32_t hi() const { return bits == 32 ? 2147483647 : (1 << (bits - 1)) - 1; }
  std::vector<float> factor;
  std::vector<std::int32_t> zero;
  std::size_t bits;
};

void count(benchmark::State &state, std::size_t n, std::size_t bits) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(n));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(n * 4 + n * bits / 8));
}

void quantize(benchmark::State &state, const kernels::GridKernel &kernel, const Shape &s, Cell cell,
              Rounding rounding) {
  const std::size_t n = s.rows * s.columns;
  const Grids grids(s, cell);
  AlignedBuffer x(n * sizeof(float)), q(n * grids.bits / 8);
  fill(x.as<float>(), n, -100, 100);
  const bool stream = q.size() + x.size() >= kernels::kStreamBytes;
  for (auto _ : state) {
    kernel.quantize({s.rows, s.columns, x.as<float>(), q.data(), cell, rounding, s.per, grids.factor.data(),
                     grids.zero.data(), -grids.hi() - 1, grids.hi(), stream});
    benchmark::ClobberMemory();
  }
  count(state, n, grids.bits);
}

void dequantize(benchmark::State &state, const kernels::GridKernel &kernel, const Shape &s, Cell cell) {
  const std::size_t n = s.rows * s.columns;
  const Grids grids(s, cell);
  AlignedBuffer x(n * sizeof(float)), q(n * grids.bits / 8);
  fill(q.as<std::uint8_t>(), q.size(), 0, 255);
  const bool stream = q.size() + x.size() >= kernels::kStreamBytes;
  for (auto _ : state) {
    kernel.dequantize({s.rows, s.columns, q.data(), x.as<float>(), cell, false, s.per, grids.factor.data(),
                       grids.zero.data(), stream});
    benchmark::ClobberMemory();
  }
  count(state, n, grids.bits);
}

void range(benchmark::State &state, const kernels::GridKernel &kernel, std::size_t n) {
  AlignedBuffer x(n * sizeof(float));
  fill(x.as<float>(), n, -100, 100);
  for (auto _ : state) benchmark::DoNotOptimize(kernel.range(x.as<float>(), n));
  count(state, n, 0);
}

#if defined(__x86_64__)
/// Reads `reads` vectors for every `writes` it writes.
template <int reads, int writes>
[[gnu::target("avx2")]] void stream_lines(const char *from, char *to, std::size_t steps, bool stream) {
  using Vector = long long __attribute__((vector_size(32)));
  for (; steps != 0; --steps) {
    Vector v[reads];
    for (int i = 0; i < 2 * reads; ++i) {
      const auto line = reinterpret_cast<const Vector *>(from)[i];
      v[i % reads] = i < reads ? line : v[i % reads] ^ line;
    }
    for (int i = 0; i < 2 * writes; ++i)
      if (stream)
        __builtin_ia32_movntdq256(reinterpret_cast<Vector *>(to) + i, v[i % reads]);
      else
        reinterpret_cast<Vector *>(to)[i] = v[i % reads];
    from += 64 * reads;
    to += 64 * writes;
  }
}

/// What the memory gives to float <-> 8-bit cells.
void limit(benchmark::State &state, std::size_t n, bool quantizing) {
  const std::size_t in = quantizing ? 4 * n : n, out = quantizing ? n : 4 * n;
  AlignedBuffer from(in), to(out);
  fill(from.as<std::uint8_t>(), in, 0, 255);
  const bool stream = in + out >= kernels::kStreamBytes;
  for (auto _ : state) {
    if (quantizing)
      stream_lines<4, 1>(from.as<char>(), to.as<char>(), n / 64, stream);
    else
      stream_lines<1, 4>(from.as<char>(), to.as<char>(), n / 64, stream);
    benchmark::ClobberMemory();
  }
  count(state, n, 8);
}
#endif

}  // namespace

void register_grid() {
  const auto add = [](const std::string &name, auto body) {
    benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMicrosecond);
  };
#if defined(__x86_64__)
  for (const std::size_t n : {std::size_t{16} << 10, std::size_t{128} << 10, std::size_t{16} << 20})
    for (const bool quantizing : {true, false})
      add(std::string("grid_limit/") + (quantizing ? "quantize/" : "dequantize/") + std::to_string(n >> 10) + "K",
          [=](benchmark::State &state) { limit(state, n, quantizing); });
#endif
  each_kernel(kernels::grid_kernels(), [&](const kernels::GridKernel &kernel) {
    for (const Shape &shape : kShapes)
      for (const Type &type : kTypes) {
        const std::string at = std::string("/") + kernel.name + "/" + type.name + "/" + shape.name;
        add("grid_reciprocal" + at, [&kernel, &shape, &type](benchmark::State &state) {
          quantize(state, kernel, shape, type.cell, Rounding::reciprocal);
        });
        if (type.cell == Cell::i8)
          add("grid_division" + at, [&kernel, &shape, &type](benchmark::State &state) {
            quantize(state, kernel, shape, type.cell, Rounding::division);
          });
        add("grid_dequantize" + at,
            [&kernel, &shape, &type](benchmark::State &state) { dequantize(state, kernel, shape, type.cell); });
      }
    add(std::string("grid_range/") + kernel.name,
        [&kernel](benchmark::State &state) { range(state, kernel, 128 << 10); });
  });
}

}  // namespace qtn::micro
