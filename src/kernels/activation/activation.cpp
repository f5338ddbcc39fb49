// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.hpp"

#include "kernels/kernel.hpp"

namespace qtn::kernels {

#define QTN_ACTIVATION_KERNEL(id, isa_level)                                                     \
  namespace activation_##id {                                                                    \
    void run(Activation f, const float *x, float *y, std::size_t count);                         \
    void backward(Activation f, const float *at, const float *dy, float *dx, std::size_t count); \
    void swish(Swish f, const float *x, float *y, std::size_t count);                            \
    void exponential_unit(const ExponentialUnit &f, const float *x, float *y, std::size_t n);    \
    void leaky(const float *slopes, std::size_t step, const float *x, float *y, std::size_t n);  \
    void exponentials(const double *x, double *y, std::size_t count);                            \
  }
#include "kernels/activation/kernels.inc"
#undef QTN_ACTIVATION_KERNEL

std::span<const ActivationKernel> activation_kernels() {
  static constexpr ActivationKernel rows[] = {
#define QTN_ACTIVATION_KERNEL(id, isa_level) \
  {#id,                                      \
   Isa::isa_level,                           \
   activation_##id::run,                     \
   activation_##id::backward,                \
   activation_##id::swish,                   \
   activation_##id::exponential_unit,        \
   activation_##id::leaky,                   \
   activation_##id::exponentials},
#include "kernels/activation/kernels.inc"
#undef QTN_ACTIVATION_KERNEL
  };
  return rows;
}

const ActivationKernel &activation_kernel() { return choose(activation_kernels(), isa()); }

}  // namespace qtn::kernels
