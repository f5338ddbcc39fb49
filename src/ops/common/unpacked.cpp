// SPDX-License-Identifier: Apache-2.0
#include "ops/common/unpacked.hpp"

namespace qtn::ops {

Tensor unpacked(const Tensor &x) {
  if (!is_packed(x.dtype())) return x;
  const Tensor plain = to_plain(x);
  const QuantizerPtr &q = x.quantizer();
  if (!q || !is_packed_integer(x.dtype())) return plain;
  return plain.with_quantizer(std::make_shared<Quantizer>(plain.dtype(), q->scheme(), q->axis(), q->scales(),
                                                          q->zero_points(), q->numerics(), q->block_size(),
                                                          q->range()));
}

void run_through_unpacked(Run run, const Call &call, std::span<Tensor> outputs) {
  if (!is_packed(call.in(0)->dtype())) return run(call, outputs);
  const Tensor x = unpacked(*call.in(0));
  std::vector<const Tensor *> inputs(call.inputs.begin(), call.inputs.end());
  inputs[0] = &x;
  Tensor y(x.dtype(), outputs[0].shape());
  run(Call{call.attrs, inputs, call.output_count, call.prepared, call.scratch}, std::span(&y, 1));
  copy_elements(outputs[0], from_plain(y, outputs[0].dtype()));
}

}  // namespace qtn::ops
