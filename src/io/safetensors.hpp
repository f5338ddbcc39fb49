// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes of header length, a JSON header that names the tensors, then their elements. Grids of
// quantized tensors, and types that the format does not have, are in its "__metadata__" under "qtensor": other readers
// see the integers.
#pragma once

#include <span>
#include <string>

#include "io/tensor_file.hpp"

namespace qtn::io {

/// Throws QTN_EFORMAT, naming path and tensor, for what is no safetensors file: offsets that overlap, leave a hole or
/// lie outside, sizes that disagree with shapes, names that come twice, unknown types, a quantizer that does not fit.
TensorFile open_safetensors(const std::string &path);
/// The same of a file that is open.
TensorFile read_safetensors(InputFile file);

struct NamedTensor {
  std::string name;
  const Tensor *tensor;
};

/// Throws QTN_EINVAL for a name that is no UTF-8, comes twice, or is the format's own "__metadata__"; QTN_EIO.
void save_safetensors(const std::string &path, std::span<const NamedTensor> tensors);
/// The bytes of that file.
std::string to_safetensors(std::span<const NamedTensor> tensors);

}  // namespace qtn::io
