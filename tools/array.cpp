// SPDX-License-Identifier: Apache-2.0
#include "array.hpp"

#include <cstring>

namespace tool {

size_t element_bytes(qdtype dtype) {
  switch (dtype) {
    case QTN_BOOL:
    case QTN_INT8:
    case QTN_UINT8:
      return 1;
    case QTN_INT16:
    case QTN_UINT16:
    case QTN_FLOAT16:
    case QTN_BFLOAT16:
      return 2;
    case QTN_INT32:
    case QTN_FLOAT32:
      return 4;
    case QTN_INT64:
    case QTN_FLOAT64:
      return 8;
    default:
      throw Failure(std::string("element type ") + qdtype_name(dtype) + " cannot be kept in an array file");
  }
}

std::string shape_text(const Shape &shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : "x") + (extent < 0 ? "?" : std::to_string(extent));
  return text;
}

void Array::validate() const {
  uint64_t bytes = element_bytes(stored);
  for (const int64_t extent : shape) {
    if (extent < 0) throw Failure(file->path() + ": shape " + shape_text(shape) + " has a negative extent");
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes))
      throw Failure(file->path() + ": shape " + shape_text(shape) + " is too large");
  }
  if (offset > file->size() || bytes > file->size() - offset)
    throw Failure(file->path() + ": is truncated: shape " + shape_text(shape) + " needs " + std::to_string(bytes) +
                  " bytes of data, the file holds " + std::to_string(file->size() - std::min(offset, file->size())));
}

size_t Array::row_elements() const {
  size_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= static_cast<size_t>(shape[i]);
  return elements;
}

Bytes Array::read(size_t first, size_t count) const {
  const size_t elements = row_elements() * count;
  Bytes bytes(elements * element_bytes(stored));
  file->read(bytes.data(), offset + first * row_elements() * element_bytes(stored), bytes.size());
  if (stored != QTN_FLOAT64) return bytes;
  Bytes narrow(elements * sizeof(float));
  for (size_t i = 0; i < elements; ++i) {
    double wide = 0;
    std::memcpy(&wide, bytes.data() + i * sizeof wide, sizeof wide);
    const auto value = static_cast<float>(wide);
    std::memcpy(narrow.data() + i * sizeof value, &value, sizeof value);
  }
  return narrow;
}

namespace {

template <typename T>
std::vector<int64_t> widen(const Bytes &bytes) {
  std::vector<int64_t> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    values[i] = static_cast<int64_t>(value);
  }
  return values;
}

}  // namespace

std::vector<int64_t> read_labels(const std::string &path) {
  const Array array = open_npy(path);
  if (array.shape.empty() || array.row_elements() != 1)
    throw Failure(path + ": labels have shape [samples], this is " + shape_text(array.shape));
  const Bytes bytes = array.read(0, array.rows());
  switch (array.stored) {
    case QTN_INT64:
      return widen<int64_t>(bytes);
    case QTN_INT32:
      return widen<int32_t>(bytes);
    case QTN_INT16:
      return widen<int16_t>(bytes);
    case QTN_INT8:
      return widen<int8_t>(bytes);
    case QTN_UINT8:
      return widen<uint8_t>(bytes);
    default:
      throw Failure(path + ": labels are int64 class numbers, this is " + qdtype_name(array.stored));
  }
}

}  // namespace tool
