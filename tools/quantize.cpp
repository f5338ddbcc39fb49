// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "checks.hpp"
#include "commands.hpp"
#include "data.hpp"
#include "file.hpp"
#include "model.hpp"
#include "progress.hpp"

namespace tool {

namespace {

struct Options {
  std::string input, output, config = "onnx", observer, format = "qdq";
  size_t samples = 0;  // 0: all
  DataOptions data;
};

Config config_of(const Options &options) {
  Config config = make<Config>(qconfig_create, options.config.c_str());
  if (!options.observer.empty()) {
    const Attrs settings = make<Attrs>(qattrs_create);
    check(qattrs_set_string(settings.get(), "observer", options.observer.c_str()));
    check(qconfig_set(config.get(), "*", settings.get()));
  }
  return config;
}

void calibrate(qmodel *prepared, const Samples &samples, size_t count, size_t batch) {
  const Progress progress("calibrating", count);
  for (size_t first = 0; first < count; first += batch) {
    const std::vector<Tensor> inputs = samples.read(first, std::min(batch, count - first));
    const std::vector<const qtensor *> pointers = borrow(inputs);
    check(qmodel_calibrate(prepared, pointers.data(), pointers.size()));
    progress.at(first + batch);
  }
}

void quantize(const Options &options) {
  const Model model = load_model(options.input);
  require_writable(options.output);
  const std::unique_ptr<Samples> samples = open_data(options.data, model.get());
  const Config config = config_of(options);
  const Model prepared = make<Model>(qmodel_prepare, model.get(), config.get(), QTN_PTQ);
  const size_t batch = batch_size(model.get(), *samples, 0);
  const size_t count = options.samples > 0 ? std::min(options.samples, samples->count()) : samples->count();
  if (count < batch) throw Failure("calibration needs at least one batch of " + std::to_string(batch) + " samples");
  calibrate(prepared.get(), *samples, count / batch * batch, batch);
  const Model converted = make<Model>(qmodel_convert, prepared.get(), nullptr);
  const Attrs attrs = make<Attrs>(qattrs_create);
  check(qattrs_set_string(attrs.get(), "format", options.format.c_str()));
  check(qmodel_save(converted.get(), options.output.c_str(), attrs.get()));
  const double before = static_cast<double>(std::filesystem::file_size(options.input));
  const double after = static_cast<double>(std::filesystem::file_size(options.output));
  std::printf("%s: %.1f KiB, calibrated with %zu samples (%s: %.1f KiB, ratio %.2f)\n", options.output.c_str(),
              after / 1024, count / batch * batch, options.input.c_str(), before / 1024, before / after);
}

}  // namespace

void add_quantize(CLI::App &app) {
  const auto options = std::make_shared<Options>();
  CLI::App &command = *app.add_subcommand("quantize", "Make an int8 model from a float model and sample data");
  command.add_option("IN.onnx", options->input, "Float model")->required();
  command.add_option("-o,--output", options->output, "Int8 model to write")->type_name("OUT.onnx")->required();
  add_data_options(command, options->data);
  command.add_option("--config", options->config, "Recipe: onnx (default), fbgemm, ...")->type_name("NAME");
  command.add_option("--observer", options->observer, "How ranges are found: minmax, moving_average, mse, ...")
      ->type_name("NAME");
  command.add_option("--format", options->format, "How int8 is written: qdq (default) or qoperator")
      ->check(CLI::IsMember({"qdq", "qoperator"}));
  command.add_option("--samples", options->samples, "Calibrate with the first N samples only")
      ->type_name("N")
      ->check(positive_count());
  command.callback([options] { quantize(*options); });
}

}  // namespace tool
