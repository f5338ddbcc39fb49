// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

struct Shape {
  const char *name;
  std::size_t m, n, k;
};

// 3x3 convolutions as the products they are; 1x1 convolutions of ResNet-50 and MobileNetV2; a square; fully connected
// layers.
constexpr Shape kShapes[] = {
    {"3x3_64@56", 3136, 64, 576},        {"3x3_128@28", 784, 128, 1152},    {"3x3_256@14", 196, 256, 2304},
    {"3x3_512@7", 49, 512, 4608},        {"1x1_64-256@56", 3136, 256, 64},  {"1x1_256-64@56", 3136, 64, 256},
    {"1x1_1024-256@14", 196, 256, 1024}, {"1x1_512-2048@7", 49, 2048, 512}, {"1x1_24-144@56", 3136, 144, 24},
    {"1x1_144-24@56", 3136, 24, 144},    {"1x1_960-320@7", 49, 320, 960},   {"1x1_32-16@112", 12544, 16, 32},
    {"1x1_16-96@112", 12544, 96, 16},    {"1x1_96-24@56", 3136, 24, 96},    {"stem_7x7_4-64@112", 12544, 64, 196},
    {"square_1024", 1024, 1024, 1024},   {"fc_1x2048x1000", 1, 1000, 2048}, {"fc_4x2048x1000", 4, 1000, 2048},
    {"fc_1x768x768", 1, 768, 768}};

void run(benchmark::State &state, const kernels::GemmKernel &kernel, const Shape &s) {
  AlignedBuffer a(s.m * s.k), b(s.n * s.k), y(s.m * s.n), packed(kernel.packed_bytes(s.n, s.k)),
      scratch(kernel.scratch_bytes(s.m, s.k));
  fill(a.as<std::uint8_t>(), s.m * s.k, 0, 255);
  fill(b.as<std::int8_t>(), s.n * s.k, -127, 127);
  const std::vector<std::int32_t> bias(s.n, 100);
  const std::vector<float> multiplier(s.n, 1e-4f);
  const auto stride = [](std::size_t v) { return static_cast<std::ptrdiff_t>(v); };
  kernel.pack(packed.data(), {b.as<std::int8_t>(), stride(s.k), bias.data(), multiplier.data(), s.n, s.k});
  const kernels::GemmArgs args{
      s.m,           s.n, s.k, a.as<std::uint8_t>(), stride(s.k), packed.data(), y.data(), stride(s.n),
      {0, 0, 255}, 0,   0,   scratch.data(), true};
  const MacCounters counters(state, static_cast<double>(s.m * s.n) * static_cast<double>(s.k));
  for (auto _ : state) {
    kernel.run_u8(args);
    benchmark::ClobberMemory();
  }
}

}  // namespace

void register_gemm() {
  each_kernel(kernels::gemm_kernels(), [](const kernels::GemmKernel &kernel) {
    for (const Shape &shape : kShapes)
      benchmark::RegisterBenchmark((std::string("gemm/") + kernel.name + "/" + shape.name).c_str(),
                                   [&](benchmark::State &state) { run(state, kernel, shape); })
          ->Unit(benchmark::kMicrosecond);
  });
}

}  // namespace qtn::micro
