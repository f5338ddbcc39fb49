// SPDX-License-Identifier: Apache-2.0
#include "ops/common/arithmetic.hpp"

#include "ops/common/elementwise.hpp"

namespace qtn::ops {

void run_arithmetic(kernels::Arithmetic f, const Tensor &a, const Tensor &b, const Tensor &y) {
  constexpr std::int64_t kTask = 1 << 15;
  if (y.count() == 0) return;
  const std::array<Shape, 2> strides{steps_over(a, y.shape()), steps_over(b, y.shape())};
  const Walk walk(y.shape(), strides);
  // The last axis has the columns, the one before it the rows.
  const std::size_t last = walk.dims.size() - 1, outer = last > 0 ? last - 1 : 0;
  const std::int64_t columns = walk.dims[last], rows = last > 0 ? walk.dims[outer] : 1;
  const std::int64_t width = std::min(columns, kTask), blocks = (columns + width - 1) / width,
                     height = std::clamp<std::int64_t>(kTask / width, 1, rows), bands = (rows + height - 1) / height;
  const auto tasks = static_cast<std::size_t>(element_count(walk.dims, 0, outer) * bands * blocks);
  parallel_for(tasks, [&, run = kernels::pointwise_kernel().run](std::size_t task) {
    auto rest = static_cast<std::int64_t>(task);
    const std::int64_t column = rest % blocks * width;
    rest /= blocks;
    const std::int64_t row = rest % bands * height;
    rest /= bands;
    const std::int64_t to = (rest * rows + row) * columns + column;
    std::array<kernels::PointwiseOperand, 2> operands;
    for (std::size_t o = 0; o < 2; ++o) {
      const Shape &steps = walk.strides[o];
      std::int64_t at = column * steps[last] + (last > 0 ? row * steps[outer] : 0), index = rest;
      for (std::size_t axis = outer; axis-- > 0; index /= walk.dims[axis]) at += index % walk.dims[axis] * steps[axis];
      operands[o] = {(o == 0 ? a : b).as<const float>() + at, last > 0 ? steps[outer] : 0, steps[last] == 0};
    }
    // A part of a row is a row of its own.
    const std::int64_t count = std::min(width, columns - column);
    run({f, static_cast<std::size_t>(blocks > 1 ? 1 : std::min(height, rows - row)), static_cast<std::size_t>(count),
         operands[0], operands[1], y.as<float>() + to});
  });
}

}  // namespace qtn::ops
