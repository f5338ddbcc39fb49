// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/quantize.hpp"

#include "micro.hpp"

namespace qtn::micro {
namespace {

struct Shape {
  const char *name;
  std::size_t rows, columns;
  bool planes;  ///< floats are planes (NCHW), bytes channels-last
};

constexpr Shape kShapes[] = {{"contiguous_150528", 1, 150528, false},
                             {"nchw_3x224x224", 224 * 224, 3, true},
                             {"nchw_64x56x56", 56 * 56, 64, true}};

void run(benchmark::State &state, const kernels::QuantizeKernel &kernel, const Shape &s, bool forward) {
  const std::size_t n = s.rows * s.columns;
  AlignedBuffer x(n * sizeof(float)), q(n);
  fill(x.as<float>(), n, -100, 100);
  fill(q.as<std::uint8_t>(), n, 0, 255);
  const auto rows = static_cast<std::ptrdiff_t>(s.rows), columns = static_cast<std::ptrdiff_t>(s.columns);
  const std::ptrdiff_t x_row = s.planes ? 1 : columns, x_column = s.planes ? rows : 1;
  for (auto _ : state) {
    if (forward)
      kernel.quantize(
          {s.rows, s.columns, x.as<float>(), x_row, x_column, q.as<std::uint8_t>(), columns, 1, 0.7f, {128, 0, 255}});
    else
      kernel.dequantize(
          {s.rows, s.columns, q.as<std::uint8_t>(), columns, 1, x.as<float>(), x_row, x_column, 0.7f, 128});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(n));
}

}  // namespace

void register_quantize() {
  each_kernel(kernels::quantize_kernels(), [](const kernels::QuantizeKernel &kernel) {
    for (const Shape &shape : kShapes)
      for (const bool forward : {true, false})
        benchmark::RegisterBenchmark(
            (std::string(forward ? "quantize/" : "dequantize/") + kernel.name + "/" + shape.name).c_str(),
            [&kernel, &shape, forward](benchmark::State &state) { run(state, kernel, shape, forward); })
            ->Unit(benchmark::kMicrosecond);
  });
}

}  // namespace qtn::micro
