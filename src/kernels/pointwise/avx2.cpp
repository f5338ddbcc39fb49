// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise/lanes.hpp"

namespace qtn::kernels::pointwise_avx2 {

void run(const PointwiseArgs &args) { run_pairs<32>(args); }
void affine(const AffineArgs &args) { run_affine<32>(args); }

}  // namespace qtn::kernels::pointwise_avx2
