// SPDX-License-Identifier: Apache-2.0
// DLPack: tensors handed from library to library without a copy. The structures and numbers are those of its ABI, up to
// version 1.1; each library defines them for itself.
#pragma once

#include <cstdint>

#include "core/tensor.hpp"

extern "C" {

struct DLDevice {
  std::int32_t device_type;  ///< 1: CPU
  std::int32_t device_id;
};

struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void *data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t *shape;
  std::int64_t *strides;  ///< in elements; NULL: row-major
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *self);
};

struct DLPackVersion {
  std::uint32_t major, minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(DLManagedTensorVersioned *self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

}  // extern "C"

namespace qtn::io {

inline constexpr std::uint64_t kDLReadOnly = 1;

/// Shares storage until the consumer calls the deleter. Throws QTN_EDTYPE for a quantized tensor, QTN_EUNSUPPORTED for
/// a type of less than 8 bits.
template <class Managed>
Managed *to_dlpack(const Tensor &t);

/// A tensor whose storage calls the deleter when it goes. Where this throws, the deleter is not called: QTN_EINVAL for
/// what breaks DLPack's rules, QTN_ESHAPE for too many dimensions, QTN_EUNSUPPORTED for the rest of DLPack that a
/// tensor cannot be.
template <class Managed>
Tensor from_dlpack(Managed *managed);

extern template DLManagedTensor *to_dlpack(const Tensor &t);
extern template DLManagedTensorVersioned *to_dlpack(const Tensor &t);
extern template Tensor from_dlpack(DLManagedTensor *managed);
extern template Tensor from_dlpack(DLManagedTensorVersioned *managed);

}  // namespace qtn::io
