// SPDX-License-Identifier: Apache-2.0
// TensorProto: all the ways ONNX stores the elements of a constant.
#pragma once

#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"
#include "onnx/external_data.hpp"
#include "onnx/proto.hpp"

namespace qtn::onnx {

/// Name and contents. `what` names the tensor in messages; empty:
/// initializer with its own name. Data outside the file lies below `folder` (empty: not allowed). Nothing is allocated
/// before the size that the shape asks for is known to be there.
std::pair<std::string, Tensor> read_tensor(protozero::data_view bytes, const DataFolder &folder,
                                           const std::string &what = {});

/// What a tensor is, without its elements. Dimensions are as the file says them.
struct TensorHead {
  std::string name;
  std::vector<std::int64_t> dims;
  std::int32_t data_type = 0;  ///< onnx.TensorProto.DataType
};
TensorHead read_head(protozero::data_view bytes);

/// The file that a tensor's elements are in; "": the model's own.
std::string external_location(protozero::data_view bytes);

/// The name of a tensor that is not read otherwise.
inline std::string tensor_name(protozero::data_view bytes) { return read_head(bytes).name; }

/// Elements as raw_data; the quantizer, if any, is not part of it.
void write_tensor(protozero::pbf_writer message, const std::string &name, const Tensor &tensor);

/// The same with its elements in a file beside the model's, from `offset` on.
void write_external_tensor(protozero::pbf_writer message, const std::string &name, const Tensor &tensor,
                           const std::string &location, std::uint64_t offset);

/// float16, bfloat16 and float64 as float32, all others as they are.
Tensor in_float32(const Tensor &t);

/// Whether tensors of an onnx.TensorProto.DataType are kept as they are.
bool is_stored(std::int32_t data_type);

/// "float32", "string" ... of an onnx.TensorProto.DataType.
std::string data_type_name(std::int32_t data_type);

}  // namespace qtn::onnx
