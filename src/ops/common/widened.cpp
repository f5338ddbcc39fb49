// SPDX-License-Identifier: Apache-2.0
#include "ops/common/widened.hpp"

namespace qtn::ops {

Widened::Widened(const Call &call, bool values) : call_(call) {
  const auto narrow = [](const Tensor *t) { return t && is_narrow_float(t->dtype()) && !t->quantized(); };
  if (std::none_of(call.inputs.begin(), call.inputs.end(), narrow)) return;
  tensors_.resize(call.inputs.size());
  pointers_.assign(call.inputs.begin(), call.inputs.end());
  for (std::size_t i = 0; i < pointers_.size(); ++i) {
    if (!narrow(pointers_[i])) continue;
    tensors_[i] = values ? to_plain(*pointers_[i]) : Tensor::meta(QTN_FLOAT32, pointers_[i]->shape());
    pointers_[i] = &tensors_[i];
  }
}

Call Widened::call() const { return {call_.attrs, pointers_, call_.output_count, call_.prepared, call_.scratch}; }

void narrow_outputs(std::span<const Tensor> wide, std::span<Tensor> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].has_data() && wide[i].dtype() != outputs[i].dtype())
      copy_elements(outputs[i], from_plain(wide[i], outputs[i].dtype()));
}

}  // namespace qtn::ops
