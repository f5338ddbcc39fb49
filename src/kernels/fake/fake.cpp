// SPDX-License-Identifier: Apache-2.0
#include "kernels/fake/fake.hpp"

#include "kernels/kernel.hpp"

namespace qtn::kernels {

#define QTN_FAKE_KERNEL(id, isa_level)                                                       \
  namespace fake_##id {                                                                      \
    void quantize(const FakeArgs &args);                                                     \
    void backward(const FakeBackwardArgs &args);                                             \
    ClipSums clip_backward(const ClipArgs &args);                                            \
    void moments(std::size_t channels, std::size_t size, const float *x, const float *shift, \
                 PlanesMoments *of_channel);                                                 \
    bool normalize(const PlanesArgs &args, float *z);                                        \
    void normalize_sums(const PlanesArgs &args, const float *dz, PlanesSums *sums);          \
    void normalize_backward(const PlanesBackwardArgs &args);                                 \
  }
#include "kernels/fake/kernels.inc"
#undef QTN_FAKE_KERNEL

std::span<const FakeKernel> fake_kernels() {
  static constexpr FakeKernel rows[] = {
#define QTN_FAKE_KERNEL(id, isa_level) \
  {#id,                                \
   Isa::isa_level,                     \
   fake_##id::quantize,                \
   fake_##id::backward,                \
   fake_##id::clip_backward,           \
   fake_##id::moments,                 \
   fake_##id::normalize,               \
   fake_##id::normalize_sums,          \
   fake_##id::normalize_backward},
#include "kernels/fake/kernels.inc"
#undef QTN_FAKE_KERNEL
  };
  return rows;
}

const FakeKernel &fake_kernel() { return choose(fake_kernels(), isa()); }

}  // namespace qtn::kernels
