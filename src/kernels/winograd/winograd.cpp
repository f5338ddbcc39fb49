// SPDX-License-Identifier: Apache-2.0
#include "kernels/winograd/winograd.hpp"

namespace qtn::kernels {

#if defined(__x86_64__)
namespace winograd_avx2_6x16 {
std::size_t packed_bytes(std::size_t n, WinogradDepth depth);
void pack(void *packed, const WinogradWeights &w);
std::size_t scratch_bytes(std::ptrdiff_t rows, std::ptrdiff_t columns, WinogradDepth depth);
void run_u8(const WinogradArgs &args);
void run_f32(const WinogradArgs &args);
}  // namespace winograd_avx2_6x16

std::span<const WinogradKernel> winograd_kernels() {
  namespace avx2 = winograd_avx2_6x16;
  static constexpr WinogradKernel rows[] = {{"winograd_avx2_6x16", Isa::avx2, 16, avx2::packed_bytes, avx2::pack,
                                             avx2::scratch_bytes, avx2::run_u8, avx2::run_f32}};
  return rows;
}
#else
std::span<const WinogradKernel> winograd_kernels() { return {}; }
#endif

}  // namespace qtn::kernels
