// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/depthwise_real/depthwise_real.hpp"

namespace qtn::kernels::depthwise_real_ref {

void run(const DepthwiseRealArgs &args) {
  const DepthwiseWindow &w = args.window;
  const auto channels = static_cast<std::ptrdiff_t>(args.channels);
  for (std::ptrdiff_t r = 0; r < args.rows; ++r)
    for (std::ptrdiff_t o = 0; o < args.columns; ++o)
      for (std::ptrdiff_t c = 0; c < channels; ++c) {
        float sum = args.bias[c];
        for (std::ptrdiff_t ky = 0; ky < w.kernel[0]; ++ky)
          for (std::ptrdiff_t kx = 0; kx < w.kernel[1]; ++kx) {
            const std::ptrdiff_t iy = (args.first_row + r) * w.stride[0] - w.pad[0] + ky * w.dilation[0];
            const std::ptrdiff_t ix = o * w.stride[1] - w.pad[1] + kx * w.dilation[1];
            if (iy < 0 || iy >= args.height || ix < 0 || ix >= args.width) continue;
            sum = std::fma(args.x[(iy * args.width + ix) * args.x_pixel + c],
                           args.weights[(ky * w.kernel[1] + kx) * args.tap + c], sum);
          }
        sum = sum < args.lo ? args.lo : sum;
        args.y[((args.first_row + r) * args.columns + o) * args.y_pixel + c] = sum > args.hi ? args.hi : sum;
      }
}

}  // namespace qtn::kernels::depthwise_real_ref
