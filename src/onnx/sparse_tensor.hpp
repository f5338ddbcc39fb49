// SPDX-License-Identifier: Apache-2.0
// SparseTensorProto: constants of which a file has the elements that are not zero, with their places.
#pragma once

#include <cstddef>
#include <protozero/data_view.hpp>
#include <string>

namespace qtn::onnx {

/// The TensorProto of the same tensor with all of its elements, of at most `most` bytes: a file of a hundred bytes can
/// say "a billion zeros". Messages call it `what`, or a sparse initializer with its name. Throws QTN_EFORMAT for places that are not within the shape or not in ascending order,
/// QTN_ENOMEM for more bytes, and QTN_EUNSUPPORTED for elements of fewer than 8 bits and for data outside the file.
std::string dense_tensor(protozero::data_view bytes, std::size_t most, const std::string &what = "");

}  // namespace qtn::onnx
