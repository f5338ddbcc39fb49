// SPDX-License-Identifier: Apache-2.0
// infer() and run() of operators whose outputs are as large as what is found in the inputs, once OpDef::make finds it.
#pragma once

#include "ops/common/infer.hpp"

namespace qtn::ops {

/// Types of what is made. The inputs must have data: see require_constant().
template <auto make>
Types infer_made(const Call &call) {
  Types types;
  for (const Tensor &t : make(call)) types.push_back({t.dtype(), t.shape()});
  return types;
}

template <auto make>
void run_made(const Call &call, std::span<Tensor> outputs) {
  const std::vector<Tensor> made = make(call);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].has_data()) copy_elements(outputs[i], made[i]);
}

}  // namespace qtn::ops
