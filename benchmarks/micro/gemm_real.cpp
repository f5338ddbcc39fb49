// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_real/gemm_real.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

struct Shape {
  const char *name;
  std::size_t m, n, k;
};

// Convolutions of ResNet-50 and MobileNetV2 as the products they are; layers and heads of transformers.
constexpr Shape kShapes[] = {
    {"3x3_64@56", 3136, 64, 576},        {"3x3_512@7", 49, 512, 4608},     {"1x1_64-256@56", 3136, 256, 64},
    {"1x1_1024-256@14", 196, 256, 1024}, {"1x1_24-144@56", 3136, 144, 24}, {"1x1_960-320@7", 49, 320, 960},
    {"128x768x768", 128, 768, 768},      {"128x3072x768", 128, 3072, 768}, {"128x768x3072", 128, 768, 3072},
    {"scores_128x128x64", 128, 128, 64}, {"fc_1x2048x1000", 1, 1000, 2048}};

void run(benchmark::State &state, const kernels::GemmRealKernel &kernel, const Shape &s) {
  const std::size_t depth = s.k * sizeof(float);
  const std::vector<float> a(s.m * s.k + kReadSlack, 0.5f), b(s.n * s.k, 0.25f);
  std::vector<float> y(s.m * s.n);
  AlignedBuffer packed(kernel.packed_bytes(s.n, depth));
  kernel.pack(packed.data(), {b.data(), static_cast<std::ptrdiff_t>(s.k), 1, nullptr, s.n, s.k});
  kernels::GemmArgs args{};
  args.m = s.m;
  args.n = s.n;
  args.k = depth;
  args.a = reinterpret_cast<const std::uint8_t *>(a.data());
  args.lda = static_cast<std::ptrdiff_t>(depth);
  args.packed = packed.data();
  args.y = y.data();
  args.ldy = static_cast<std::ptrdiff_t>(s.n);
  args.lo = -1e30f;
  args.hi = 1e30f;
  const MacCounters counters(state, static_cast<double>(s.m * s.n) * static_cast<double>(s.k));
  for (auto _ : state) {
    kernel.run(args);
    benchmark::ClobberMemory();
  }
}

}  // namespace

void register_gemm_real() {
  each_kernel(kernels::gemm_real_kernels(), [](const kernels::GemmRealKernel &kernel) {
    for (const Shape &shape : kShapes)
      benchmark::RegisterBenchmark((std::string("gemm_real/") + kernel.name + "/" + shape.name).c_str(),
                                   [&](benchmark::State &state) { run(state, kernel, shape); })
          ->Unit(benchmark::kMicrosecond);
  });
}

}  // namespace qtn::micro
