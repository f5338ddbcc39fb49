// SPDX-License-Identifier: Apache-2.0
#include "shared/model.hpp"

#include <nlohmann/json.hpp>

#include "data/file.hpp"

namespace tool {

std::string library_version() {
  const uint32_t version = qlib_version();
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xff) + "." +
         std::to_string(version & 0xff);
}

Model load_model(const std::string &path) { return make<Model>(qmodel_load, path.c_str()); }

std::uintmax_t stored_bytes(const std::string &path, const qmodel *model) {
  const Blob text = make<Blob>(qmodel_inspect, model);
  const auto parameters = nlohmann::json::parse(text_of(text.get())).at("parameter_bytes").get<std::uintmax_t>();
  // Numbers of few bits may be wider here than in a file, but not so much. What is no regular file has no size.
  constexpr std::uintmax_t kWider = 8;
  const std::uintmax_t file = file_bytes(path);
  return file > 0 && file < parameters / kWider ? file + parameters : file;
}

Session open_session(const qmodel *model, const std::string &engine, int64_t threads) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  if (!engine.empty()) check(qattrs_set_string(attrs.get(), "engine", engine.c_str()));
  if (threads > 0) check(qattrs_set_int(attrs.get(), "threads", threads));
  return make<Session>(qsession_create, model, attrs.get());
}

std::vector<const qtensor *> borrow(const std::vector<Tensor> &tensors) {
  std::vector<const qtensor *> pointers;
  for (const Tensor &tensor : tensors) pointers.push_back(tensor.get());
  return pointers;
}

std::vector<Tensor> run_session(const qmodel *model, const qsession *session, const std::vector<Tensor> &inputs) {
  std::vector<qtensor *> raw(qmodel_output_count(model));
  const std::vector<const qtensor *> pointers = borrow(inputs);
  check(qsession_run(raw.data(), raw.size(), session, pointers.data(), pointers.size()));
  std::vector<Tensor> outputs;
  for (qtensor *tensor : raw) outputs.emplace_back(tensor);
  for (Tensor &tensor : outputs)
    tensor = qtensor_quantizer(tensor.get()) != nullptr ? make<Tensor>(qtensor_dequantize, tensor.get())
                                                        : make<Tensor>(qtensor_contiguous, tensor.get());
  return outputs;
}

Shape shape_of(const qtensor *tensor) {
  const int64_t *extents = qtensor_shape(tensor);
  return Shape(extents, extents + qtensor_rank(tensor));
}

Tensor cast(const qtensor *tensor, qdtype dtype) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  check(qattrs_set_int(attrs.get(), "to", dtype));
  qtensor *output = nullptr;
  check(qop_run(&output, 1, "Cast", &tensor, 1, attrs.get()));
  return Tensor(output);
}

namespace {

template <typename T>
std::vector<double> widen(const qtensor *tensor) {
  const auto *first = static_cast<const T *>(qtensor_data(tensor));
  return std::vector<double>(first, first + qtensor_nbytes(tensor) / sizeof(T));
}

}  // namespace

std::vector<double> values_of(const qtensor *tensor) {
  switch (qtensor_dtype(tensor)) {
    case QTN_FLOAT32:
      return widen<float>(tensor);
    case QTN_FLOAT64:
      return widen<double>(tensor);
    case QTN_FLOAT16:
    case QTN_BFLOAT16:
      return widen<float>(cast(tensor, QTN_FLOAT32).get());
    case QTN_INT64:
      return widen<int64_t>(tensor);
    case QTN_INT32:
      return widen<int32_t>(tensor);
    case QTN_INT16:
      return widen<int16_t>(tensor);
    case QTN_UINT64:
      return widen<uint64_t>(tensor);
    case QTN_UINT32:
      return widen<uint32_t>(tensor);
    case QTN_UINT16:
      return widen<uint16_t>(tensor);
    case QTN_INT8:
      return widen<int8_t>(tensor);
    case QTN_UINT8:
    case QTN_BOOL:
      return widen<uint8_t>(tensor);
    default:
      throw Failure(std::string("values of type ") + qdtype_name(qtensor_dtype(tensor)) + " cannot be compared");
  }
}

}  // namespace tool
