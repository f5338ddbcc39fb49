// SPDX-License-Identifier: Apache-2.0
#include "kernels/depthwise/depthwise.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

/// `size` is the side of the input, padded by half a window as MobileNets are.
struct Shape {
  const char *name;
  std::size_t channels;
  std::ptrdiff_t size, window, stride;
};

constexpr Shape kShapes[] = {
    {"3x3_32@112", 32, 112, 3, 1},   {"3x3s2_96@112", 96, 112, 3, 2}, {"3x3_144@56", 144, 56, 3, 1},
    {"3x3s2_144@56", 144, 56, 3, 2}, {"3x3_192@28", 192, 28, 3, 1},   {"3x3s2_192@28", 192, 28, 3, 2},
    {"3x3_384@14", 384, 14, 3, 1},   {"3x3_576@14", 576, 14, 3, 1},   {"3x3s2_576@14", 576, 14, 3, 2},
    {"3x3_960@7", 960, 7, 3, 1},     {"3x3_16@112", 16, 112, 3, 1},   {"3x3s2_64@112", 64, 112, 3, 2},
    {"3x3_72@56", 72, 56, 3, 1},     {"5x5s2_72@56", 72, 56, 5, 2},   {"5x5_120@28", 120, 28, 5, 1},
    {"3x3s2_240@28", 240, 28, 3, 2}, {"3x3_200@14", 200, 14, 3, 1},   {"3x3_184@14", 184, 14, 3, 1},
    {"3x3_480@14", 480, 14, 3, 1},   {"3x3_672@14", 672, 14, 3, 1},   {"5x5s2_672@14", 672, 14, 5, 2},
    {"5x5_960@7", 960, 7, 5, 1},     {"7x7_96@56", 96, 56, 7, 1}};

void run(benchmark::State &state, const kernels::DepthwiseKernel &kernel, const Shape &s) {
  const std::ptrdiff_t out = (s.size - 1) / s.stride + 1, pad = s.window / 2;
  const kernels::DepthwiseWindow window{{s.window, s.window}, {s.stride, s.stride}, {1, 1}, {pad, pad}};
  const std::size_t taps = static_cast<std::size_t>(s.window * s.window), c = s.channels;
  const std::size_t in_bytes = static_cast<std::size_t>(s.size * s.size) * c,
                    out_bytes = static_cast<std::size_t>(out * out) * c;
  AlignedBuffer x(in_bytes), w(taps * c), y(out_bytes), packed(kernel.packed_bytes(window, c)),
      scratch(kernel.scratch_bytes(window));
  fill(x.as<std::uint8_t>(), in_bytes, 0, 255);
  fill(w.as<std::int8_t>(), taps * c, -127, 127);
  const std::vector<std::int32_t> bias(c, 100);
  const std::vector<float> multiplier(c, 1e-3f);
  kernel.pack(packed.data(), window, {w.as<std::int8_t>(), bias.data(), multiplier.data(), c});
  const auto pixel = static_cast<std::ptrdiff_t>(c);
  const kernels::DepthwiseArgs args{window,
                                    x.as<std::uint8_t>(),
                                    s.size,
                                    s.size,
                                    s.size * pixel,
                                    pixel,
                                    128,
                                    0,
                                    out,
                                    out,
                                    c,
                                    packed.data(),
                                    y.as<std::uint8_t>(),
                                    out * pixel,
                                    pixel,
                                    {128, 0, 255},
                                    0,
                                    0,
                                    scratch.data()};
  const MacCounters counters(state, static_cast<double>(out_bytes * taps));
  for (auto _ : state) {
    kernel.run_u8(args);
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
