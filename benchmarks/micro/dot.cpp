// SPDX-License-Identifier: Apache-2.0
#include "kernels/dot/dot.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

struct Shape {
  std::size_t m, n, k;
};

void run(benchmark::State &state, const kernels::DotKernel &kernel, Shape s) {
  AlignedBuffer x(s.m * s.k), w(s.n * s.k), y(s.m * s.n * sizeof(float));
  fill(x.as<std::uint8_t>(), s.m * s.k, 0, 127);
  fill(w.as<std::int8_t>(), s.n * s.k, -127, 127);
  const std::vector<float> multiplier(s.n, 1e-4f), bias(s.n, 0.5f);
  const auto stride = [](std::size_t v) { return static_cast<std::ptrdiff_t>(v); };
  const kernels::DotArgs args{s.m,           s.n,        s.k,     x.data(), stride(s.k), w.data(),          stride(s.k),
                              true,          60,         nullptr, nullptr,  nullptr,     multiplier.data(), bias.data(),
                              y.as<float>(), stride(s.n)};
  const MacCounters counters(state, static_cast<double>(s.m * s.n) * static_cast<double>(s.k));
  for (auto _ : state) {
    kernel.run(args);
    benchmark::ClobberMemory();
  }
}

}  // namespace

void register_dot() {
  each_kernel(kernels::dot_kernels(), [](const kernels::DotKernel &kernel) {
    for (const std::size_t m : {1, 4, 32, 128})
      for (const auto &[n, k] :
           {std::pair<std::size_t, std::size_t>{768, 768}, {3072, 768}, {768, 3072}, {1024, 1024}}) {
        const Shape shape{m, n, k};
        const std::string name = std::string("dot/") + kernel.name + "/" + std::to_string(m) + "x" + std::to_string(k) +
                                 "x" + std::to_string(n);
        benchmark::RegisterBenchmark(name.c_str(), [&kernel, shape](benchmark::State &state) {
          run(state, kernel, shape);
        })->Unit(benchmark::kMicrosecond);
      }
  });
}

}  // namespace qtn::micro
