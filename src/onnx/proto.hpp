// SPDX-License-Identifier: Apache-2.0
// The part of ONNX's protobuf schema (onnx.proto) that is read and written here, and how its fields are told apart.
#pragma once

#include <bit>
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

namespace qtn::onnx {

// Tensor data is little-endian in files and is copied as it is.
static_assert(std::endian::native == std::endian::little, "big-endian machines need byte swapping of tensor data");

namespace field {

using Tag = protozero::pbf_tag_type;

namespace model {
inline constexpr Tag ir_version = 1, producer_name = 2, producer_version = 3, graph = 7, opset_import = 8,
                     metadata_props = 14, functions = 25;
}
namespace function {
inline constexpr Tag name = 1, input = 4, output = 5, node = 7, opset_import = 9, domain = 10, attribute_proto = 11,
                     overload = 13;
}
namespace opset {
inline constexpr Tag domain = 1, version = 2;
}
namespace entry {  // StringStringEntryProto
inline constexpr Tag key = 1, value = 2;
}
namespace graph {
inline constexpr Tag node = 1, name = 2, initializer = 5, input = 11, output = 12, value_info = 13,
                     sparse_initializer = 15;
}
namespace node {
inline constexpr Tag input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7, overload = 8;
}
namespace attribute {
inline constexpr Tag name = 1, f = 2, i = 3, s = 4, t = 5, g = 6, floats = 7, ints = 8, strings = 9, tensors = 10,
                     graphs = 11, type = 20, ref_attr_name = 21, sparse_tensor = 22;
}
namespace tensor {
inline constexpr Tag dims = 1, data_type = 2, float_data = 4, int32_data = 5, int64_data = 7, name = 8, raw_data = 9,
                     double_data = 10, uint64_data = 11, external_data = 13, data_location = 14;
}
namespace sparse_tensor {
inline constexpr Tag values = 1, indices = 2, dims = 3;
}
namespace value_info {
inline constexpr Tag name = 1, type = 2;
}
namespace type {
inline constexpr Tag tensor_type = 1;
}
namespace tensor_type {
inline constexpr Tag elem_type = 1, shape = 2;
}
namespace shape {
inline constexpr Tag dim = 1;
}
namespace dimension {
inline constexpr Tag dim_value = 1, dim_param = 2;
}

}  // namespace field

/// AttributeProto.AttributeType.
enum class AttributeType {
  undefined = 0,
  f = 1,
  i = 2,
  s = 3,
  t = 4,
  g = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  sparse_tensor = 11
};

// Labels for switch (message.tag_and_type()). A known field of an unexpected wire type matches none and is skipped like
// an unknown one, as protobuf itself does.
constexpr std::uint32_t as_varint(field::Tag tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t as_bytes(field::Tag tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t as_fixed32(field::Tag tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::fixed32);
}
constexpr std::uint32_t as_fixed64(field::Tag tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::fixed64);
}

template <class T, class Range>
void append(std::vector<T> &to, const Range &range) {
  to.insert(to.end(), range.begin(), range.end());
}

/// A name. Throws QTN_EFORMAT unless it is UTF-8 without control characters, so that messages stay one line of text.
std::string read_name(protozero::data_view view);

}  // namespace qtn::onnx
