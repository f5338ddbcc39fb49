// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

namespace qtn::capi {

void check_dtype(const char *entry, qdtype dtype) {
  if (dtype_name(dtype)[0] == '?') fail(QTN_EINVAL, entry, ": dtype ", static_cast<int>(dtype), " is unknown");
}

void check_scheme(const char *entry, qscheme scheme) {
  if (static_cast<unsigned>(scheme) > QTN_PER_BLOCK_SYMMETRIC)
    fail(QTN_EINVAL, entry, ": scheme ", static_cast<int>(scheme), " is unknown");
}

const Attrs &attrs_or_none(const qattrs *attrs) {
  static const Attrs none;
  return attrs ? attrs->value : none;
}

const QuantizerPtr &quantizer_or_none(const qquantizer *quantizer) {
  static const QuantizerPtr none;
  return quantizer ? quantizer->value : none;
}

std::vector<const Tensor *> tensors(const char *entry, const qtensor *const *inputs, std::size_t count, bool optional) {
  need_array(entry, inputs, count, "inputs");
  std::vector<const Tensor *> result(count, nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    if (inputs[i])
      result[i] = &inputs[i]->value;
    else if (!optional)
      fail(QTN_EINVAL, entry, ": inputs[", i, "] is NULL");
  }
  return result;
}

void hand_out(qtensor **outputs, std::vector<Tensor> results) {
  std::vector<std::unique_ptr<qtensor>> handles;
  handles.reserve(results.size());
  for (Tensor &t : results) handles.push_back(std::make_unique<qtensor>(std::move(t)));
  for (std::size_t i = 0; i < handles.size(); ++i) outputs[i] = handles[i].release();
}

}  // namespace qtn::capi
