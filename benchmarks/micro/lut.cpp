// SPDX-License-Identifier: Apache-2.0
#include "kernels/lut/lut.hpp"

#include "micro.hpp"

namespace qtn::micro {

void register_lut() {
  each_kernel(kernels::lut_kernels(), [](const kernels::LutKernel &kernel) {
    benchmark::RegisterBenchmark((std::string("lut/") + kernel.name).c_str(), [&](benchmark::State &state) {
      constexpr std::size_t kCount = 200704;
      AlignedBuffer x(kCount), y(kCount), table(256);
      fill(x.as<std::uint8_t>(), kCount, 0, 255);
      fill(table.as<std::uint8_t>(), 256, 0, 255);
      for (auto _ : state) {
        kernel.run({y.as<std::uint8_t>(), x.as<std::uint8_t>(), 1, kCount, 0, table.as<std::uint8_t>()});
        benchmark::ClobberMemory();
      }
      state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kCount));
    });
  });
}

}  // namespace qtn::micro
