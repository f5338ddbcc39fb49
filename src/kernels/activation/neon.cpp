// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/loops.hpp"

namespace qtn::kernels::activation_neon {

void run(Activation f, const float *x, float *y, std::size_t count) { run_loops<16>(f, x, y, count); }
void backward(Activation f, const float *at, const float *dy, float *dx, std::size_t count) {
  backward_loops(f, at, dy, dx, count);
}
void swish(Swish f, const float *x, float *y, std::size_t count) { swish_loop<16>(f, x, y, count); }
void exponential_unit(const ExponentialUnit &f, const float *x, float *y, std::size_t count) {
  exponential_unit_loop<16>(f, x, y, count);
}
void leaky(const float *slopes, std::size_t step, const float *x, float *y, std::size_t count) {
  leaky_loop<16>(slopes, step, x, y, count);
}
void exponentials(const double *x, double *y, std::size_t count) { exponential_loop(x, y, count); }

}  // namespace qtn::kernels::activation_neon
