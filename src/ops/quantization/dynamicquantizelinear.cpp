// SPDX-License-Identifier: Apache-2.0
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr const char *kName = "DynamicQuantizeLinear";

Types infer(const Call &call) {
  require_float(kName, "x", call.in(0));
  Shape grids;
  if (own_grid(kName, call.attrs).granularity == Granularity::row) {
    grids = call.in(0)->shape();
    if (grids.empty()) fail(QTN_ESHAPE, kName, ": x is a scalar, which has no rows");
    grids[grids.size() - 1] = 1;
  }
  Types types{{QTN_UINT8, call.in(0)->shape()}, {QTN_FLOAT32, grids}, {QTN_UINT8, grids}};
  types.resize(call.output_count);
  return types;
}

/// x and outputs[0] may be a row of the whole.
void quantize_one(const Tensor &x, const QuantizerPtr &q, std::span<Tensor> outputs, std::size_t at) {
  copy_elements(outputs[0], quantize(x, q));
  if (outputs.size() > 1) outputs[1].as<float>()[at] = static_cast<float>(q->scale());
  if (outputs.size() > 2) outputs[2].as<std::uint8_t>()[at] = static_cast<std::uint8_t>(q->zero_point());
}

void run(const Call &call, std::span<Tensor> outputs) {
  const OwnGrid grid = own_grid(kName, call.attrs);
  const Tensor &x = *call.in(0);
  if (grid.granularity == Granularity::tensor)
    return quantize_one(x, dynamic_quantizer(kName, x, grid.numerics), outputs, 0);
  Shape shape = x.shape();
  const std::int64_t k = shape.back();
  shape[shape.size() - 1] = 1;
  const std::int64_t rows = element_count(shape);
  const Tensor by_row = x.reshaped({rows, k}), q_by_row = outputs[0].reshaped({rows, k});
  std::vector<Tensor> row(outputs.begin(), outputs.end());
  for (std::int64_t i = 0; i < rows; ++i) {
    const Tensor x_row = by_row.select(0, i);
    row[0] = q_by_row.select(0, i);
    quantize_one(x_row, dynamic_quantizer(kName, x_row, grid.numerics), row, static_cast<std::size_t>(i));
  }
}

qdtype output_dtype(const Attrs &, std::size_t output, qdtype) { return output == 1 ? QTN_FLOAT32 : QTN_UINT8; }

}  // namespace

const OpDef kDynamicQuantizeLinear{.name = kName,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .max_outputs = 3,
                                   .attrs = kDynamicAttrs,
                                   .infer = infer,
                                   .run = run,
                                   .output_dtype = output_dtype};

}  // namespace qtn::ops
