// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/common/elementwise.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"align_corners", AttrSpec::kInt}};
constexpr const char *kName = "AffineGrid";

Types infer(const Call &call) {
  const Tensor &theta = *call.in(0);
  require_real(kName, "theta", &theta);
  const std::vector<std::int64_t> size = constant_ints(kName, "size", *call.in(1));
  const auto axes = static_cast<std::int64_t>(size.size()) - 2;
  if (axes != 2 && axes != 3) fail(QTN_EINVAL, kName, ": size has ", size.size(), " values, not 4 or 5");
  if (!(theta.shape() == Shape{size[0], axes, axes + 1}))
    fail(QTN_ESHAPE, kName, ": theta is ", to_string(theta.shape()), ", ", to_string(Shape{size[0], axes, axes + 1}),
         " is expected");
  Shape shape{size[0]};
  for (std::size_t i = 2; i < size.size(); ++i) {
    if (size[i] < 1) fail(QTN_EINVAL, kName, ": a dimension of size is ", size[i]);
    shape.push_back(size[i]);
  }
  shape.push_back(axes);
  return {{theta.dtype(), shape}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &theta = *call.in(0), &y = outputs[0];
  const bool corners = call.attrs.get_int("align_corners", 0) != 0;
  const std::size_t axes = y.rank() - 2;
  const std::int64_t places = element_count(y.shape(), 1, y.rank() - 1);
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    for_blocks(y.dim(0) * places, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T *matrix = theta.as<const T>() + i / places * static_cast<std::int64_t>(axes * (axes + 1));
        std::array<double, 4> at{};  // x, y, z: the last axis comes first
        std::int64_t rest = i % places;
        for (std::size_t axis = 0; axis < axes; ++axis) {
          const std::int64_t dim = y.dim(axes - axis), k = rest % dim;
          rest /= dim;
          const auto n = static_cast<double>(dim), place = static_cast<double>(k);
          at[axis] = corners ? (dim == 1 ? -1 : 2 * place / (n - 1) - 1) : (2 * place + 1) / n - 1;
        }
        at[axes] = 1;
        for (std::size_t row = 0; row < axes; ++row) {
          double sum = 0;
          for (std::size_t c = 0; c <= axes; ++c) sum += static_cast<double>(matrix[row * (axes + 1) + c]) * at[c];
          y.as<T>()[static_cast<std::size_t>(i) * axes + row] = static_cast<T>(sum);
        }
      }
    });
  };
  y.dtype() == QTN_FLOAT64 ? fill(double{}) : fill(float{});
}

}  // namespace

const OpDef kAffineGrid{.name = kName,
                        .min_inputs = 2,
                        .max_inputs = 2,
                        .max_outputs = 1,
                        .attrs = kAttrs,
                        .infer = infer,
                        .run = run,
                        .shapes_from = {1, 1}};

}  // namespace qtn::ops
