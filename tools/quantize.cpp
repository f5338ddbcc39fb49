// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>

#include "calibration.hpp"
#include "commands.hpp"
#include "file.hpp"
#include "model.hpp"
#include "progress.hpp"

namespace tool {

namespace {

struct Options {
  std::string input, output, calibrated, format = "qdq";
  CalibrationOptions calibration;
};

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

int show_progress(const char *stage, size_t done, size_t total, void *ctx) {
  static_cast<Source *>(ctx)->progress.at(stage, done, total);
  return 0;
}

Model quantize_on(const qmodel *model, const qconfig *config, const CalibrationData &data) {
  Progress progress;
  Source source{data, progress, nullptr};
  qmodel *converted = nullptr;
  const qstatus status =
      qmodel_quantize(&converted, model, config, read_sample, data.batches(), nullptr, show_progress, &source);
  if (source.failure) std::rethrow_exception(source.failure);
  check(status);
  return Model(converted);
}

Model quantize_calibrated(const qmodel *model, const qconfig *config, const std::string &path) {
  const Model prepared = make<Model>(qmodel_prepare, model, config, QTN_PTQ);
  check(qmodel_load_calibration(prepared.get(), path.c_str()));
  return make<Model>(qmodel_convert, prepared.get(), nullptr);
}

void quantize(const Options &options) {
  const Model model = load_model(options.input);
  require_writable(options.output);
  const Config config = make_config(options.calibration);
  Model converted;
  std::string how;
  if (options.calibrated.empty()) {
    const CalibrationData data(options.calibration, model.get(), {});
    converted = quantize_on(model.get(), config.get(), data);
    how = "with " + std::to_string(data.samples()) + " samples";
  } else {
    converted = quantize_calibrated(model.get(), config.get(), options.calibrated);
    how = "from " + options.calibrated;
  }
  const Attrs attrs = make<Attrs>(qattrs_create);
  check(qattrs_set_string(attrs.get(), "format", options.format.c_str()));
  check(qmodel_save(converted.get(), options.output.c_str(), attrs.get()));
  const double before = static_cast<double>(std::filesystem::file_size(options.input));
  const double after = static_cast<double>(std::filesystem::file_size(options.output));
  std::printf("%s: %.1f KiB, calibrated %s (%s: %.1f KiB, ratio %.2f)\n", options.output.c_str(), after / 1024,
              how.c_str(), options.input.c_str(), before / 1024, before / after);
}

}  // namespace

void add_quantize(CLI::App &app) {
  const auto options = std::make_shared<Options>();
  CLI::App &command = *app.add_subcommand("quantize", "Make an int8 model from a float model and sample data");
  command.add_option("IN.onnx", options->input, "Float model")->required();
  command.add_option("-o,--output", options->output, "Int8 model to write")->type_name("OUT.onnx")->required();
  CLI::Option &data = *add_calibration_options(command, options->calibration);
  command.add_option("--calibration", options->calibrated, "Instead of --data: a file of `calibrate` or `merge`")
      ->type_name("FILE.qcal")
      ->excludes(&data);
  command.add_option("--format", options->format, "How int8 is written: qdq (default) or qoperator")
      ->check(CLI::IsMember({"qdq", "qoperator"}));
  command.callback([options] {
    if (options->calibration.data.sources.empty() && options->calibrated.empty())
      throw UsageError("quantize: wants --data or --calibration");
    quantize(*options);
  });
}

}  // namespace tool
