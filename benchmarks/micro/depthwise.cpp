// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

/// `size` is the side of the output; the input has its border around it, as a padded activation buffer has.
struct Shape {
  const char *name;
  std::size_t channels, size, window, stride;
};

constexpr Shape kShapes[] = {
    {"3x3_32@112", 32, 112, 3, 1},  {"3x3s2_96@112", 96, 56, 3, 2}, {"3x3_144@56", 144, 56, 3, 1},
    {"3x3_192@28", 192, 28, 3, 1},  {"3x3_384@14", 384, 14, 3, 1},  {"3x3_576@14", 576, 14, 3, 1},
    {"3x3s2_576@14", 576, 7, 3, 2}, {"3x3_960@7", 960, 7, 3, 1},    {"5x5_240@14", 240, 14, 5, 1},
    {"5x5_256@14", 256, 14, 5, 1},  {"5x5_120@28", 120, 28, 5, 1},  {"7x7_96@56", 96, 56, 7, 1}};

void run(benchmark::State &state, const kernels::DepthwiseKernel &kernel, const Shape &s) {
  const std::size_t taps = s.window * s.window, c = s.channels, width = (s.size - 1) * s.stride + s.window;
  AlignedBuffer x(width * width * c), w(taps * c), y(s.size * s.size * c), packed(kernel.packed_bytes(taps, c));
  fill(x.as<std::uint8_t>(), width * width * c, 0, 255);
  fill(w.as<std::int8_t>(), taps * c, -127, 127);
  const std::vector<std::int32_t> bias(c, 100);
  const std::vector<float> multiplier(c, 1e-3f);
  kernel.pack(packed.data(), {w.as<std::int8_t>(), bias.data(), multiplier.data(), taps, c});
  std::vector<const std::uint8_t *> tap(taps);
  const MacCounters counters(state, static_cast<double>(s.size * s.size * taps * c));
  for (auto _ : state) {
    for (std::size_t row = 0; row < s.size; ++row) {
      for (std::size_t t = 0; t < taps; ++t)
        tap[t] = x.as<std::uint8_t>() + ((row * s.stride + t / s.window) * width + t % s.window) * c;
      kernel.run({tap.data(),
                  taps,
                  s.size,
                  static_cast<std::ptrdiff_t>(s.stride * c),
                  c,
                  packed.data(),
                  y.as<std::uint8_t>() + row * s.size * c,
                  static_cast<std::ptrdiff_t>(c),
                  {128, 0, 255}});
    }
    benchmark::ClobberMemory();
  }
}

}  // namespace

void register_depthwise() {
  each_kernel(kernels::depthwise_kernels(), [](const kernels::DepthwiseKernel &kernel) {
    for (const Shape &shape : kShapes)
      benchmark::RegisterBenchmark((std::string("depthwise/") + kernel.name + "/" + shape.name).c_str(),
                                   [&](benchmark::State &state) { run(state, kernel, shape); })
          ->Unit(benchmark::kMicrosecond);
  });
}

}  // namespace qtn::micro
