// SPDX-License-Identifier: Apache-2.0
#include "onnx/tensor_proto.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.hpp"
#include "onnx/external_data.hpp"
#include "onnx/messages.hpp"

namespace qtn::onnx {

using protozero::data_view;
using protozero::pbf_reader;

std::string data_type_name(std::int32_t data_type) {
  switch (data_type) {
    case 8:
      return "string";
    case 14:
      return "complex64";
    case 15:
      return "complex128";
    default:
      break;
  }
  const char *name = data_type < 0 ? "?" : dtype_name(static_cast<qdtype>(data_type));
  return name[0] == '?' ? cat("number ", data_type) : name;
}

bool is_stored(std::int32_t data_type) {
  switch (data_type) {
    case QTN_FLOAT32:
    case QTN_FLOAT64:
    case QTN_FLOAT16:
    case QTN_BFLOAT16:
    case QTN_UINT8:
    case QTN_INT8:
    case QTN_UINT4:
    case QTN_INT4:
    case QTN_UINT2:
    case QTN_INT2:
    case QTN_FLOAT8E4M3FN:
    case QTN_FLOAT8E5M2:
    case QTN_FLOAT8E4M3FNUZ:
    case QTN_FLOAT8E5M2FNUZ:
    case QTN_FLOAT8E8M0:
    case QTN_FLOAT4E2M1:
    case QTN_UINT16:
    case QTN_INT16:
    case QTN_INT32:
    case QTN_INT64:
    case QTN_UINT32:
    case QTN_UINT64:
    case QTN_BOOL:
      return true;
    default:
      return false;
  }
}

namespace {

constexpr std::int32_t kExternal = 1;  // TensorProto.DataLocation

struct TensorProto {
  std::string name;
  std::vector<std::int64_t> dims;
  std::int32_t data_type = 0;
  std::optional<data_view> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int32_t> int32s;
  std::vector<std::int64_t> int64s;
  std::vector<std::uint64_t> uint64s;  ///< of uint32, too
  bool external = false;
  std::vector<std::pair<std::string, std::string>> external_entries;
};

TensorProto read_proto(data_view bytes) {
  namespace f = field::tensor;
  TensorProto t;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(f::name):
        t.name = read_name(message.get_view());
        break;
      case as_varint(f::dims):
        t.dims.push_back(message.get_int64());
        break;
      case as_bytes(f::dims):
        append(t.dims, message.get_packed_int64());
        break;
      case as_varint(f::data_type):
        t.data_type = message.get_int32();
        break;
      case as_bytes(f::raw_data):
        t.raw = message.get_view();
        break;
      case as_fixed32(f::float_data):
        t.floats.push_back(message.get_float());
        break;
      case as_bytes(f::float_data):
        append(t.floats, message.get_packed_float());
        break;
      case as_fixed64(f::double_data):
        t.doubles.push_back(message.get_double());
        break;
      case as_bytes(f::double_data):
        append(t.doubles, message.get_packed_double());
        break;
      case as_varint(f::int32_data):
        t.int32s.push_back(message.get_int32());
        break;
      case as_bytes(f::int32_data):
        append(t.int32s, message.get_packed_int32());
        break;
      case as_varint(f::int64_data):
        t.int64s.push_back(message.get_int64());
        break;
      case as_bytes(f::int64_data):
        append(t.int64s, message.get_packed_int64());
        break;
      case as_varint(f::uint64_data):
        t.uint64s.push_back(message.get_uint64());
        break;
      case as_bytes(f::uint64_data):
        append(t.uint64s, message.get_packed_uint64());
        break;
      case as_bytes(f::external_data):
        t.external_entries.push_back(read_entry(message.get_view()));
        break;
      case as_varint(f::data_location):
        t.external = message.get_enum() == kExternal;
        break;
      default:
        message.skip();
    }
  return t;
}

qdtype dtype_here(std::int32_t data_type, const std::string &what) {
  if (is_stored(data_type)) return static_cast<qdtype>(data_type);
  fail(QTN_EUNSUPPORTED, what, " has element type ", data_type_name(data_type), ", which is not supported");
}

void normalize_bools(const Tensor &t) {
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<std::uint8_t>()[i] = t.as<std::uint8_t>()[i] != 0;
}

/// Entries of a typed list: elements, but bytes of packed types.
std::size_t list_length_of(const Tensor &t) {
  return is_packed(t.dtype()) ? t.nbytes() : static_cast<std::size_t>(t.count());
}

/// From the typed lists; their length is already known to be right.
void fill_from_lists(const Tensor &out, const TensorProto &t) {
  const std::size_t count = list_length_of(out);
  for (std::size_t i = 0; i < count; ++i) switch (t.data_type) {
      case QTN_FLOAT32:
        out.as<float>()[i] = t.floats[i];
        break;
      case QTN_FLOAT64:
        out.as<double>()[i] = t.doubles[i];
        break;
      case QTN_INT64:
        out.as<std::int64_t>()[i] = t.int64s[i];
        break;
      case QTN_UINT64:
        out.as<std::uint64_t>()[i] = t.uint64s[i];
        break;
      case QTN_UINT32:
        out.as<std::uint32_t>()[i] = static_cast<std::uint32_t>(t.uint64s[i]);
        break;
      case QTN_INT32:
        out.as<std::int32_t>()[i] = t.int32s[i];
        break;
      case QTN_INT16:
      case QTN_UINT16:
      case QTN_FLOAT16:
      case QTN_BFLOAT16:
        out.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(t.int32s[i]);
        break;
      default:
        out.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(t.int32s[i]);
    }
}

std::size_t list_length(const TensorProto &t) {
  switch (t.data_type) {
    case QTN_FLOAT32:
      return t.floats.size();
    case QTN_FLOAT64:
      return t.doubles.size();
    case QTN_INT64:
      return t.int64s.size();
    case QTN_UINT32:
    case QTN_UINT64:
      return t.uint64s.size();
    default:
      return t.int32s.size();
  }
}

std::int64_t checked_count(const TensorProto &t, const Shape &shape, const std::string &what) {
  for (const std::int64_t dim : shape)
    if (dim < 0) fail(QTN_EFORMAT, what, " has a negative dimension in its shape ", to_string(shape));
  if (has_strides(shape)) return element_count(shape);
  fail(QTN_EFORMAT, what, " of type ", data_type_name(t.data_type), " has an impossible shape ", to_string(shape));
}

}  // namespace

TensorHead read_head(data_view bytes) {
  namespace f = field::tensor;
  TensorHead head;
  pbf_reader message(bytes);
  while (message.next()) switch (message.tag_and_type()) {
      case as_bytes(f::name):
        head.name = read_name(message.get_view());
        break;
      case as_varint(f::dims):
        head.dims.push_back(message.get_int64());
        break;
      case as_bytes(f::dims):
        append(head.dims, message.get_packed_int64());
        break;
      case as_varint(f::data_type):
        head.data_type = message.get_int32();
        break;
      default:
        message.skip();
    }
  return head;
}

std::string external_location(data_view bytes) {
  const TensorProto t = read_proto(bytes);
  for (const auto &[key, value] : t.external_entries)
    if (t.external && key == "location") return value;
  return "";
}

std::pair<std::string, Tensor> read_tensor(data_view bytes, const DataFolder &folder, const std::string &what_given) {
  const TensorProto t = read_proto(bytes);
  const std::string what = what_given.empty() ? cat("initializer \"", t.name, "\"") : what_given;
  const qdtype dtype = dtype_here(t.data_type, what);
  if (t.dims.size() > kMaxRank)
    fail(QTN_EUNSUPPORTED, what, " has rank ", t.dims.size(), ", over the limit of ", kMaxRank);
  const Shape shape{std::span<const std::int64_t>(t.dims)};
  const auto count = static_cast<std::size_t>(checked_count(t, shape, what));
  const std::size_t nbytes = storage_nbytes(static_cast<qdtype>(t.data_type), static_cast<std::int64_t>(count));

  if (t.external) {
    const ExternalFile file(folder, t.external_entries, nbytes, what);
    Tensor tensor(dtype, shape);
    file.read(tensor.data());
    if (dtype == QTN_BOOL) normalize_bools(tensor);
    return {t.name, std::move(tensor)};
  }
  const std::size_t entries = is_packed(dtype) ? nbytes : count;
  if (t.raw ? t.raw->size() != nbytes : list_length(t) != entries)
    fail(QTN_EFORMAT, what, " of shape ", to_string(shape), " and type ", data_type_name(t.data_type), " needs ",
         t.raw ? nbytes : entries, t.raw ? " bytes" : " elements", ", the file holds ",
         t.raw ? t.raw->size() : list_length(t));
  Tensor tensor(dtype, shape);
  if (!t.raw)
    fill_from_lists(tensor, t);
  else if (nbytes != 0)
    std::memcpy(tensor.data(), t.raw->data(), nbytes);
  if (dtype == QTN_BOOL) normalize_bools(tensor);
  return {t.name, std::move(tensor)};
}

Tensor in_float32(const Tensor &t) {
  if (t.dtype() == QTN_FLOAT16 || t.dtype() == QTN_BFLOAT16) return to_plain(t);
  if (t.dtype() != QTN_FLOAT64) return t;
  const Tensor out(QTN_FLOAT32, t.shape());
  const auto *from = t.as<const double>();
  std::transform(from, from + t.count(), out.as<float>(), [](double v) { return static_cast<float>(v); });
  return out;
}

namespace {

void write_description(protozero::pbf_writer &message, const std::string &name, const Tensor &tensor) {
  namespace f = field::tensor;
  // onnx.proto does not pack dims.
  for (const std::int64_t dim : tensor.shape()) message.add_int64(f::dims, dim);
  message.add_int32(f::data_type, tensor.dtype());
  message.add_string(f::name, name);
}

}  // namespace

void write_tensor(protozero::pbf_writer message, const std::string &name, const Tensor &tensor) {
  write_description(message, name, tensor);
  const Tensor plain = tensor.to_contiguous();
  message.add_bytes(field::tensor::raw_data, plain.as<char>(), plain.nbytes());
}

void write_external_tensor(protozero::pbf_writer message, const std::string &name, const Tensor &tensor,
                           const std::string &location, std::uint64_t offset) {
  write_description(message, name, tensor);
  const auto add = [&](const char *key, const std::string &value) {
    protozero::pbf_writer entry(message, field::tensor::external_data);
    entry.add_string(field::entry::key, key);
    entry.add_string(field::entry::value, value);
  };
  add("location", location);
  add("offset", std::to_string(offset));
  add("length", std::to_string(tensor.nbytes()));
  message.add_enum(field::tensor::data_location, kExternal);
}

}  // namespace qtn::onnx
