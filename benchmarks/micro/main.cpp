// SPDX-License-Identifier: Apache-2.0
#include "micro.hpp"

int main(int argc, char **argv) {
  using namespace qtn::micro;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  register_gemm();
  register_gemm_real();
  register_depthwise();
  register_elementwise();
  register_quantize();
  register_grid();
  register_dot();
  register_pool();
  register_lut();
  register_fake();
  register_call();
  benchmark::AddCustomContext("peak GMAC/s", std::to_string(peak_macs() / 1e9));
  benchmark::RunSpecifiedBenchmarks();
}
