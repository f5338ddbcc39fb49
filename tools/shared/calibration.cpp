// SPDX-License-Identifier: Apache-2.0
#include "shared/calibration.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "shared/checks.hpp"

namespace tool {

CLI::Option *add_calibration_options(CLI::App &command, CalibrationOptions &options) {
  CLI::Option *data = add_data_options(command, options.data);
  command
      .add_option("--config", options.config,
                  "onnx (default), fbgemm, x86, qnnpack, onednn, nvidia, tflite, torchvision_fbgemm, "
                  "torchvision_qnnpack, or a file NAME.json")
      ->type_name("NAME");
  CLI::Option *equalize = command.add_flag_callback(
      "--equalize", [&options] { options.equalize = true; },
      "First equalize the weights of neighbouring layers, in any case");
  command
      .add_flag_callback(
          "--no-equalize", [&options] { options.equalize = false; }, "Do not try to equalize them")
      ->excludes(equalize);
  command.add_option("--observer", options.observer, "How ranges are found: minmax, mse, percentile, entropy, ...")
      ->type_name("NAME");
  command.add_option("--samples", options.samples, "Calibrate only with the first N samples")
      ->type_name("N")
      ->check(positive_count());
  return data;
}

std::string config_file(const std::string &name) { return name.ends_with(".json") ? name : ""; }

Config open_config(const std::string &name) {
  if (!config_file(name).empty()) return make<Config>(qconfig_load, name.c_str());
  qconfig *config = nullptr;
  check_named(qconfig_create(&config, name.c_str()));
  return Config(config);
}

Config make_config(const CalibrationOptions &options) {
  Config config = open_config(options.config.empty() ? "onnx" : options.config);
  const Attrs settings = make<Attrs>(qattrs_create);
  if (options.equalize) check(qattrs_set_int(settings.get(), "equalize", *options.equalize));
  if (!options.observer.empty()) check(qattrs_set_string(settings.get(), "observer", options.observer.c_str()));
  check_named(qconfig_set(config.get(), "*", settings.get()));
  return config;
}

CalibrationData::CalibrationData(const CalibrationOptions &options, const qmodel *model, Shard shard)
    : samples_(open_data(options.data, model)), batch_(batch_size(model, *samples_, 0)) {
  const size_t count = options.samples > 0 ? std::min(options.samples, samples_->count()) : samples_->count();
  if (count % batch_ != 0)
    throw Failure("calibration with " + std::to_string(count) + " samples: not a multiple of the batch of " +
                  std::to_string(batch_) + " that the model fixes");
  const size_t batches = count / batch_;
  if (batches == 0) throw Failure("calibration needs at least one batch of " + std::to_string(batch_) + " samples");
  first_ = batches * shard.index / shard.count;
  end_ = batches * (shard.index + 1) / shard.count;
  if (first_ == end_)
    throw Failure("shard " + std::to_string(shard.index + 1) + "/" + std::to_string(shard.count) + " of " +
                  std::to_string(batches * batch_) + " samples is empty");
}

}  // namespace tool
