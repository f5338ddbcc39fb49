// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise/lanes.hpp"

namespace qtn::kernels::pointwise_avx512 {

void run(const PointwiseArgs &args) { run_pairs<64>(args); }
void affine(const AffineArgs &args) { run_affine<64>(args); }

}  // namespace qtn::kernels::pointwise_avx512
