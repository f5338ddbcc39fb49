// SPDX-License-Identifier: Apache-2.0
#include "onnx/sparse_tensor.hpp"

#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "base/size.hpp"
#include "onnx/proto.hpp"
#include "onnx/tensor_proto.hpp"

namespace qtn::onnx {

using protozero::data_view;
using protozero::pbf_reader;

namespace {

struct SparseTensorProto {
  data_view values, indices;
  std::vector<std::int64_t> dims;
};

SparseTensorProto read_proto(data_view bytes) {
  namespace f = field::sparse_tensor;
  SparseTensorProto t;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(f::values):
        t.values = message.get_view();
        break;
      case as_bytes(f::indices):
        t.indices = message.get_view();
        break;
      case as_varint(f::dims):
        t.dims.push_back(message.get_int64());
        break;
      case as_bytes(f::dims):
        append(t.dims, message.get_packed_int64());
        break;
      default:
        message.skip();
    }
  return t;
}

/// Where the elements of a list are in the dense tensor: numbers that are counted through, or a row of coordinates each.
class Places {
 public:
  Places(const Tensor &indices, const Shape &shape, std::int64_t count, const std::string &what)
      : indices_(indices), shape_(shape), what_(what) {
    const Shape numbers{count}, rows{count, static_cast<std::int64_t>(shape.size())};
    if (indices.dtype() != QTN_INT64 || (indices.shape() != numbers && indices.shape() != rows))
      fail(QTN_EFORMAT, what, " has indices of ", dtype_name(indices.dtype()), " ", to_string(indices.shape()), " for ",
           count, " elements of shape ", to_string(shape));
    is_linear_ = indices.shape() == numbers;
  }

  std::int64_t operator[](std::int64_t i) const {
    if (is_linear_) return checked(indices_.as<const std::int64_t>()[i], element_count(shape_));
    std::int64_t place = 0;
    const std::int64_t *row = indices_.as<const std::int64_t>() + i * static_cast<std::int64_t>(shape_.size());
    for (std::size_t axis = 0; axis < shape_.size(); ++axis)
      place = place * shape_[axis] + checked(row[axis], shape_[axis]);
    return place;
  }

 private:
  std::int64_t checked(std::int64_t index, std::int64_t size) const {
    if (index < 0 || index >= size)
      fail(QTN_EFORMAT, what_, " has the index ", index, ", which is not within its shape ", to_string(shape_));
    return index;
  }

  const Tensor &indices_;
  const Shape &shape_;
  const std::string &what_;
  bool is_linear_ = false;
};

}  // namespace

std::string dense_tensor(data_view bytes, std::size_t most, const std::string &what_given) {
  const SparseTensorProto t = read_proto(bytes);
  const std::string what =
      what_given.empty() ? cat("sparse initializer \"", read_head(t.values).name, "\"") : what_given;
  if (t.dims.size() > kMaxRank)
    fail(QTN_EUNSUPPORTED, what, " has rank ", t.dims.size(), ", over the limit of ", kMaxRank);
  const Shape shape{std::span<const std::int64_t>(t.dims)};
  Size elements = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0) fail(QTN_EFORMAT, what, " has a negative dimension in its shape ", to_string(shape));
    elements = elements * dim;
  }
  const auto [name, values] = read_tensor(t.values, "", what);
  if (values.shape().size() != 1)
    fail(QTN_EFORMAT, what, " has values of shape ", to_string(values.shape()), ", which is not a list");
  if (is_packed(values.dtype()))
    fail(QTN_EUNSUPPORTED, what, " is ", dtype_name(values.dtype()), ", which is not supported there");
  const std::size_t item = storage_nbytes(values.dtype(), 1);
  const std::size_t nbytes = (elements * item).value();
  if (nbytes > most)
    fail(QTN_ENOMEM, what, " of shape ", to_string(shape), " takes ", nbytes, " bytes, more than ", most,
         " for a file of this size");

  const Tensor indices = read_tensor(t.indices, "", cat("the indices of ", what)).second;
  const std::int64_t count = values.count();
  const Places places(indices, shape, count, what);
  std::string raw(nbytes, '\0');
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = places[i];
    if (place <= last) fail(QTN_EFORMAT, what, " has the element ", place, " behind the element ", last);
    last = place;
    std::memcpy(raw.data() + static_cast<std::size_t>(place) * item,
                values.as<char>() + static_cast<std::size_t>(i) * item, item);
  }

  namespace f = field::tensor;
  std::string dense;
  protozero::pbf_writer message(dense);
  for (const std::int64_t dim : shape) message.add_int64(f::dims, dim);
  message.add_int32(f::data_type, values.dtype());
  message.add_string(f::name, name);
  message.add_bytes(f::raw_data, raw);
  return dense;
}

}  // namespace qtn::onnx
