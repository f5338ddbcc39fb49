// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy format, versions 1 to 3: magic, version, a header that is a Python dictionary, then the elements.
#pragma once

#include <string>

#include "io/tensor_file.hpp"

namespace qtn::io {

/// A file of one tensor without a name. Throws QTN_EFORMAT, naming the path, for what is no .npy file or holds a type
/// that a tensor cannot.
TensorFile open_npy(const std::string &path);

/// Throws QTN_EDTYPE for a quantized tensor, QTN_EUNSUPPORTED for a type that NumPy does not have, QTN_EIO.
void save_npy(const std::string &path, const Tensor &t);

}  // namespace qtn::io
