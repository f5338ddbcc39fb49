// SPDX-License-Identifier: Apache-2.0
#include "data/array.hpp"

#include <nlohmann/json.hpp>

#include "data/file.hpp"
#include "shared/model.hpp"

namespace tool {

namespace {

bool is_real(qdtype dtype) {
  return dtype == QTN_FLOAT32 || dtype == QTN_FLOAT64 || dtype == QTN_FLOAT16 || dtype == QTN_BFLOAT16;
}

}  // namespace

Tensor of_input(Tensor rows, qdtype wanted) {
  const qdtype got = qtensor_dtype(rows.get()), real = is_real(wanted) ? wanted : QTN_FLOAT32;
  return is_real(got) && got != real ? cast(rows.get(), real) : std::move(rows);
}

Tensor Array::read(size_t first, size_t count) const {
  return make<Tensor>(qtensor_load_rows, path.c_str(), name.c_str(), static_cast<int64_t>(first),
                      static_cast<int64_t>(first + count));
}

std::vector<Array> open_arrays(const std::string &path) {
  const auto file = nlohmann::json::parse(text_of(make<Blob>(qtensor_inspect, path.c_str()).get()));
  std::vector<Array> arrays;
  for (const auto &tensor : file.at("tensors")) arrays.push_back({path, tensor.at("name"), tensor.at("shape")});
  return arrays;
}

Array open_array(const std::string &path) {
  std::vector<Array> arrays = open_arrays(path);
  if (arrays.size() != 1) throw Failure(path + ": holds " + std::to_string(arrays.size()) + " tensors, not 1");
  return std::move(arrays.front());
}

namespace {

void add_labels(std::vector<int64_t> &labels, const std::string &path) {
  const Array array = open_array(path);
  const bool column = array.shape.size() == 2 && array.shape[1] == 1;
  if (array.shape.size() != 1 && !column)
    throw Failure(path + ": labels have shape [samples], this is " + shape_text(array.shape));
  const Tensor stored = array.read(0, array.rows());
  switch (qtensor_dtype(stored.get())) {
    case QTN_INT64:
    case QTN_INT32:
    case QTN_UINT32:
    case QTN_UINT64:
    case QTN_UINT16:
    case QTN_INT16:
    case QTN_INT8:
    case QTN_UINT8:
      break;
    default:
      throw Failure(path + ": labels are int64 class numbers, this is " + qdtype_name(qtensor_dtype(stored.get())));
  }
  const Tensor wide = cast(stored.get(), QTN_INT64);
  const auto *values = static_cast<const int64_t *>(qtensor_data(wide.get()));
  labels.insert(labels.end(), values, values + array.rows());
}

}  // namespace

std::vector<int64_t> read_labels(const std::string &path, size_t samples) {
  const std::vector<std::string> paths = matches_of(path);
  if (paths.empty()) throw Failure(path + ": matches no file");
  std::vector<int64_t> labels;
  for (const std::string &one : paths) add_labels(labels, one);
  if (labels.size() != samples)
    throw Failure(path + ": holds " + std::to_string(labels.size()) + " labels for " + std::to_string(samples) +
                  " samples");
  return labels;
}

std::string shape_text(const Shape &shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : "x") + (extent < 0 ? "?" : std::to_string(extent));
  return text;
}

}  // namespace tool
