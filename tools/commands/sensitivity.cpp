// SPDX-License-Identifier: Apache-2.0
// `sensitivity`: which layer hurts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.hpp"
#include "shared/json.hpp"
#include "shared/model.hpp"
#include "shared/quantization.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

struct SensitivityOptions {
  std::string input;
  CalibrationOptions calibration;
  bool json = false;
};

// Numbers that JSON cannot say, an infinite ratio, are null there.
std::string decibels(const Json &value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value.is_null() ? 0.0 : value.get<double>());
  return value.is_null() ? "inf" : text;
}

void print_table(Json layers) {
  std::stable_sort(layers.begin(), layers.end(), [](const Json &a, const Json &b) {
    const auto key = [](const Json &layer) {
      const Json &value = layer.at("alone_sqnr_db");
      return value.is_null() ? 1e9 : value.get<double>();
    };
    return key(a) < key(b);
  });
  std::printf("%10s %10s %12s  %s\n", "alone dB", "cosine", "together dB", "layer");
  for (const Json &layer : layers)
    std::printf("%10s %10.6f %12s  %s (%s)\n", decibels(layer.at("alone_sqnr_db")).c_str(),
                layer.at("alone_cosine").get<double>(), decibels(layer.at("accumulated_sqnr_db")).c_str(),
                layer.at("node").get<std::string>().c_str(), layer.at("op").get<std::string>().c_str());
}

void measure(const SensitivityOptions &options) {
  const Model model = load_model(options.input);
  const Config config = make_config(options.calibration);
  const CalibrationData data(options.calibration, model.get(), {});
  const Attrs attrs = make<Attrs>(qattrs_create);
  check(qattrs_set_int(attrs.get(), "sensitivity", 1));
  const Quantized quantized = quantize_on(model.get(), config.get(), data, attrs.get());
  const Json layers = Json::parse(quantized.report).at("layers");
  if (options.json)
    print_json(stdout, {{"layers", layers}});
  else
    print_table(layers);
}

}  // namespace

void add_sensitivity(CLI::App &app) {
  const auto options = std::make_shared<SensitivityOptions>();
  CLI::App &command =
      *app.add_subcommand("sensitivity", "Show what each layer loses when it is quantized, worst first");
  command.add_option("IN.onnx", options->input, "Float model")->required();
  add_calibration_options(command, options->calibration)->required();
  command.add_flag("--json", options->json, "Print one JSON object");
  command.callback([options] { measure(*options); });
}

}  // namespace tool
