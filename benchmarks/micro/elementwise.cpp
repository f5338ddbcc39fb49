// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/elementwise.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

// A tensor in L1, the sums of ResNet-50's stages, and one beyond L2.
constexpr std::size_t kSizes[] = {16 << 10, 256 * 56 * 56, 1024 * 14 * 14, 4 << 20};

void run(benchmark::State &state, void (*kernel)(const kernels::BinaryArgs &), std::size_t n) {
  AlignedBuffer a(n), b(n), y(n);
  fill(a.as<std::uint8_t>(), n, 0, 255);
  fill(b.as<std::uint8_t>(), n, 0, 255);
  const auto row = static_cast<std::ptrdiff_t>(n);
  const kernels::BinaryArgs args{
      1,    n,    a.as<std::uint8_t>(), b.as<std::uint8_t>(), y.as<std::uint8_t>(), row, row, row, 1, 1, 120, 130,
      0.4f, 0.6f, {128, 0, 255}};
  for (auto _ : state) {
    kernel(args);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(n));
}

}  // namespace

void register_elementwise() {
  each_kernel(kernels::binary_kernels(), [](const kernels::BinaryKernel &kernel) {
    for (std::size_t n : kSizes) {
      const std::string at = std::string("/") + kernel.name + "/" + std::to_string(n);
      benchmark::RegisterBenchmark(("add" + at).c_str(), [=](benchmark::State &state) { run(state, kernel.add, n); });
      benchmark::RegisterBenchmark(("mul" + at).c_str(), [=](benchmark::State &state) { run(state, kernel.mul, n); });
    }
  });
}

}  // namespace qtn::micro
