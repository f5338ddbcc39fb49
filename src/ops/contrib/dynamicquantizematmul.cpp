// SPDX-License-Identifier: Apache-2.0
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/qlinear.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "DynamicQuantizeMatMul";

// Inputs a (float32), b, b_scale, b_zero_point, bias.
Grid b_grid(const Call &call) {
  const Tensor &b = *call.in(1);
  return columns_grid({kName, "b", b.dtype(), call.in(2), call.in(3)}, b);
}

Types infer(const Call &call) {
  require_float(kName, "a", call.in(0));
  const OwnGrid grid = own_grid(kName, call.attrs);
  require_8bit(kName, "b", *call.in(1));
  check_grid(b_grid(call));
  const Shape shape = real_shape(kMatMul, Attrs(), {call.in(0), call.in(1)});
  check_column_bias(kName, call.in(4), *call.in(1));
  if (grid.granularity == Granularity::row && call.in(1)->rank() > 2)
    fail(QTN_EUNSUPPORTED, kName, ": rows with grids of their own are multiplied by a matrix, not by b ",
         to_string(call.in(1)->shape()));
  return {{QTN_FLOAT32, shape}};
}

/// y = x b, where x gets one grid.
void multiply(const Tensor &x, const Tensor &b, Numerics numerics, const Tensor &y) {
  const Tensor on_grid = quantize(x, dynamic_quantizer(kName, x, numerics));
  run_on_grids(kMatMul, Attrs(), {&on_grid, &b}, nullptr, y);
}

void run(const Call &call, std::span<Tensor> outputs) {
  const OwnGrid grid = own_grid(kName, call.attrs);
  const Tensor &a = *call.in(0), &y = outputs[0], b = call.in(1)->with_quantizer(quantizer_of(b_grid(call)));
  if (grid.granularity == Granularity::tensor) {
    multiply(a, b, grid.numerics, y);
  } else if (y.count() > 0) {
    const std::int64_t columns = b.rank() == 1 ? 1 : b.dim(1), rows = y.count() / columns;
    const Tensor a_rows = a.reshaped({rows, 1, b.dim(0)}), y_rows = y.reshaped({rows, 1, columns});
    const Tensor matrix = b.reshaped({b.dim(0), columns});
    for (std::int64_t i = 0; i < rows; ++i) multiply(a_rows.select(0, i), matrix, grid.numerics, y_rows.select(0, i));
  }
  add_column_bias(y, call.in(4));
}

}  // namespace

const OpDef kDynamicQuantizeMatMul{.name = kName,
                                   .domain = kMicrosoft,
                                   .min_inputs = 3,
                                   .max_inputs = 5,
                                   .max_outputs = 1,
                                   .attrs = kDynamicAttrs,
                                   .infer = infer,
                                   .run = run,
                                   .work = work_of_product};

}  // namespace qtn::ops
