// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

struct Shape {
  const char *name;
  std::size_t windows, channels, pixels;
};

constexpr Shape kShapes[] = {
    {"3x3_64_row56", 9, 64, 56}, {"global_7x7_2048", 49, 2048, 1}, {"global_7x7_1280", 49, 1280, 1}};

void run(benchmark::State &state, void (*kernel)(const kernels::PoolArgs &), const Shape &s) {
  AlignedBuffer x((s.windows + s.pixels) * s.channels), y(s.pixels * s.channels);
  fill(x.as<std::uint8_t>(), (s.windows + s.pixels) * s.channels, 0, 255);
  std::vector<const std::uint8_t *> windows;
  for (std::size_t w = 0; w < s.windows; ++w) windows.push_back(x.as<std::uint8_t>() + w * s.channels);
  const auto row = static_cast<std::ptrdiff_t>(s.channels);
  const kernels::PoolArgs args{windows.data(),       s.windows, s.pixels, row,   s.channels,
                               y.as<std::uint8_t>(), row,       3,        0.01f, {}};
  for (auto _ : state) {
    kernel(args);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(s.windows * s.pixels * s.channels));
}

}  // namespace

void register_pool() {
  each_kernel(kernels::pool_kernels(), [](const kernels::PoolKernel &kernel) {
    for (const Shape &shape : kShapes) {
      const std::string at = std::string("/") + kernel.name + "/" + shape.name;
      benchmark::RegisterBenchmark(("max_pool" + at).c_str(),
                                   [&](benchmark::State &state) { run(state, kernel.max, shape); });
      benchmark::RegisterBenchmark(("average_pool" + at).c_str(),
                                   [&](benchmark::State &state) { run(state, kernel.average, shape); });
    }
  });
}

}  // namespace qtn::micro
