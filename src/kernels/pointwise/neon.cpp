// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise/lanes.hpp"

namespace qtn::kernels::pointwise_neon {

void run(const PointwiseArgs &args) { run_pairs<16>(args); }
void affine(const AffineArgs &args) { run_affine<16>(args); }

}  // namespace qtn::kernels::pointwise_neon
