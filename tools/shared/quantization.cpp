// SPDX-License-Identifier: Apache-2.0
#include "shared/quantization.hpp"

#include <exception>

#include "shared/progress.hpp"

namespace tool {

namespace {

// What the functions that are given to qmodel_quantize see.
struct Source {
  const CalibrationData &data;
  Progress &progress;
  std::exception_ptr failure;  // C does not let it through
};

qstatus read_sample(qtensor **inputs, size_t input_count, size_t index, void *ctx) {
  auto &source = *static_cast<Source *>(ctx);
  try {
    std::vector<Tensor> tensors = source.data.read(index);
    for (size_t i = 0; i < input_count; ++i) inputs[i] = tensors[i].release();
    return QTN_OK;
  } catch (...) {
    source.failure = std::current_exception();
    return QTN_ECANCELED;
  }
}

qanswer show_progress(const char *stage, size_t done, size_t total, void *ctx) {
  static_cast<Source *>(ctx)->progress.at(stage, done, total);
  return QTN_CONTINUE;
}

}  // namespace

Quantized quantize_on(const qmodel *model, const qconfig *config, const CalibrationData &data, const qattrs *attrs) {
  Progress progress;
  Source source{data, progress, nullptr};
  qmodel *converted = nullptr;
  qblob *report = nullptr;
  const qstatus status =
      qmodel_quantize(&converted, &report, model, config, read_sample, data.batches(), attrs, show_progress, &source);
  if (source.failure) std::rethrow_exception(source.failure);
  check(status);
  return {Model(converted), text_of(Blob(report).get())};
}

}  // namespace tool
