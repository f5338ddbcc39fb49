// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/commands.hpp"
#include "data/outputs.hpp"
#include "report/quantization_page.hpp"
#include "shared/checks.hpp"
#include "shared/dataless.hpp"
#include "shared/interrupt.hpp"
#include "shared/json.hpp"
#include "shared/model.hpp"
#include "shared/quantization.hpp"
#include "shared/summary.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

// What is asked of qmodel_quantize besides calibration.
struct Recovery {
  bool plain = false, absorb_bias = false, adaround = false, automatic = false;
  std::optional<bool> bias_correction;
  std::optional<double> smooth, target_sqnr, target_top1;
  std::string fallback;

  bool targeted() const { return target_sqnr || target_top1; }
  bool any() const { return plain || absorb_bias || bias_correction || adaround || automatic || smooth || targeted(); }
};

struct QuantizeOptions {
  std::string input, output, calibrated, format = "qdq", report;
  std::vector<std::string> words;  // of the command line
  CalibrationOptions calibration;
  Recovery recovery;
  DatalessOptions dataless;
  bool asked_for_dataless = false;  // otherwise that is what is left without samples
  bool json = false;
};

Attrs attrs_of(const Recovery &recovery, bool reported) {
  Attrs attrs = make<Attrs>(qattrs_create);
  const auto flag = [&](const char *key, bool value) { check(qattrs_set_int(attrs.get(), key, value)); };
  const auto number = [&](const char *key, const std::optional<double> &value) {
    if (value) check(qattrs_set_float(attrs.get(), key, *value));
  };
  for (const auto &[key, asked] : {std::pair{"plain", recovery.plain},
                                   {"absorb_bias", recovery.absorb_bias},
                                   {"adaround", recovery.adaround},
                                   {"auto", recovery.automatic}})
    if (asked) flag(key, true);
  if (recovery.bias_correction) flag("bias_correction", *recovery.bias_correction);
  flag("sensitivity", reported);
  flag("histograms", reported);
  number("smooth", recovery.smooth);
  number("target_sqnr", recovery.target_sqnr);
  number("target_top1", recovery.target_top1);
  if (!recovery.fallback.empty()) check(qattrs_set_string(attrs.get(), "fallback", recovery.fallback.c_str()));
  return attrs;
}

Model quantize_calibrated(const qmodel *model, const qconfig *config, const std::string &path) {
  const Model prepared = make<Model>(qmodel_prepare, model, config, QTN_PTQ);
  check(qmodel_load_calibration(prepared.get(), path.c_str()));
  return make<Model>(qmodel_convert, prepared.get(), nullptr);
}

// Writes the file; {"output", "bytes", "input_bytes"}.
Json save(const qmodel *real, const qmodel *model, const QuantizeOptions &options) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  check(qattrs_set_string(attrs.get(), "format", options.format.c_str()));
  write_whole([&] { return qmodel_save(model, options.output.c_str(), attrs.get()); });
  return {{"output", options.output},
          {"bytes", stored_bytes(options.output, model)},
          {"input_bytes", stored_bytes(options.input, real)}};
}

// Pipes and devices have no size.
void print_saved(std::FILE *talk, const Json &saved, const QuantizeOptions &options, const std::string &how) {
  const double before = saved.at("input_bytes").get<double>() / 1024, after = saved.at("bytes").get<double>() / 1024;
  if (before > 0 && after > 0)
    std::fprintf(talk, "%s: %.1f KiB, %s (%s: %.1f KiB, ratio %.2f)\n", options.output.c_str(), after, how.c_str(),
                 options.input.c_str(), before, before / after);
  else
    std::fprintf(talk, "%s: %s\n", options.output.c_str(), how.c_str());
}

void save_without_samples(std::FILE *talk, const qmodel *real, const qmodel *model, const QuantizeOptions &options,
                          const std::string &how) {
  const Json saved = save(real, model, options);
  if (options.json)
    print_json(talk, saved);
  else
    print_saved(talk, saved, options, how);
}

void quantize(const QuantizeOptions &options) {
  const Model model = load_model(options.input);
  const bool reported = !options.report.empty();
  const Config config = make_config(options.calibration);
  std::optional<CalibrationData> samples;
  if (!options.calibration.data.sources.empty()) samples.emplace(options.calibration, model.get(), Shard{});
  const std::vector<std::string> outputs = {options.output, options.report};
  std::vector<std::string> read = {options.calibrated, config_file(options.calibration.config)};
  if (samples)
    for (std::string &path : samples->files()) read.push_back(std::move(path));
  check_outputs(outputs, read, options.input);
  std::FILE *const talk = talk_beside(outputs);
  if (options.dataless.any() && !samples) {
    const Model quantized = quantize_without_data(model.get(), config.get(), options.dataless);
    return save_without_samples(talk, model.get(), quantized.get(), options,
                                options.asked_for_dataless ? "without samples" : what_is_dynamic(quantized.get()));
  }
  if (!options.calibrated.empty()) {
    const Model quantized = quantize_calibrated(model.get(), config.get(), options.calibrated);
    return save_without_samples(talk, model.get(), quantized.get(), options, "calibrated from " + options.calibrated);
  }
  if (options.dataless.any()) set_weights_only(config.get(), options.dataless);
  const CalibrationData &data = *samples;
  const Quantized quantized = quantize_on(model.get(), config.get(), data, attrs_of(options.recovery, reported).get());
  Json result = save(model.get(), quantized.model.get(), options);
  const Json report = with_speed(Json::parse(quantized.report), model.get(), quantized.model.get(), data);
  if (options.json) {
    result["samples"] = report.at("samples");
    result.update(summarize(report));
    print_json(talk, result);
  } else {
    print_summary(talk, report);
    const size_t count = report.at("samples").get<size_t>();
    print_saved(talk, result, options,
                "calibrated with " + std::to_string(count) + (count == 1 ? " sample" : " samples"));
  }
  if (!reported) return;
  write_report(options.report, {options.input, options.output, model.get(), quantized.model.get(), quantized.report,
                                data, options.calibration.data, options.words});
  if (!options.json) std::fprintf(talk, "%s: report\n", options.report.c_str());
}

// Whether an option says something of samples.
bool needs_samples(const QuantizeOptions &options) {
  const CalibrationOptions &c = options.calibration;
  return options.recovery.any() || !options.recovery.fallback.empty() || c.equalize || !c.observer.empty() ||
         !options.report.empty();
}

}  // namespace

void add_quantize(CLI::App &app, std::vector<std::string> words) {
  const auto options = std::make_shared<QuantizeOptions>();
  options->words = std::move(words);
  CLI::App &command =
      *app.add_subcommand("quantize", "Make an int8 model from a float model, with sample data or without");
  command.add_option("IN.onnx", options->input, "Float model")->required();
  command.add_option("-o,--output", options->output, "Quantized model to write")->type_name("OUT.onnx")->required();
  CLI::Option &data = *add_calibration_options(command, options->calibration);
  CLI::Option &calibrated =
      *command
           .add_option("--calibration", options->calibrated, "Take a file of `calibrate` or `merge` instead of --data")
           ->type_name("FILE.qcal")
           ->excludes(&data);
  for (const char *name : {"--samples", "--size", "--mean", "--std", "--layout", "--channels"})
    command.get_option(name)->needs(&data);
  CLI::Option &plain =
      *command.add_flag("--plain", options->recovery.plain, "Only calibrate and convert; try no corrections");
  command.add_flag("--absorb-bias", options->recovery.absorb_bias,
                   "Try to move what channels before a Relu always exceed into the bias of the next layer");
  command.add_flag_callback(
      "--bias-correction", [options] { options->recovery.bias_correction = true; },
      "Try to give the output channels of each layer the means that they have in float (default)");
  command
      .add_flag_callback(
          "--no-bias-correction", [options] { options->recovery.bias_correction = false; }, "Do not")
      ->excludes(command.get_option("--bias-correction"));
  command.add_flag("--adaround", options->recovery.adaround, "Try to learn which weights to round up (takes minutes)");
  command.add_option("--smooth", options->recovery.smooth, "Try SmoothQuant of this strength, 0 to 1")
      ->type_name("F")
      ->check(between_0_and_1());
  command.add_flag("--auto", options->recovery.automatic,
                   "Also try SmoothQuant, dynamic products, and observers for each tensor; keep what gains; with a "
                   "target the fastest mode");
  for (const char *name : {"--absorb-bias", "--bias-correction", "--adaround", "--smooth", "--auto"})
    command.get_option(name)->excludes(&plain);
  command
      .add_option("--target-sqnr", options->recovery.target_sqnr,
                  "Leave the fewest layers in float with which the outputs reach this SQNR")
      ->type_name("DB")
      ->check(number_that<double>([](double x) { return std::isfinite(x); }, "a number"));
  command
      .add_option("--target-top1", options->recovery.target_top1,
                  "The same for the fraction of samples whose largest output stays where it is in float")
      ->type_name("F")
      ->check(number_that<double>([](double x) { return x > 0 && x <= 1; }, "a number above 0 and up to 1"));
  command
      .add_option("--fallback", options->recovery.fallback,
                  "What these layers become: float (default), or int16 for activations of 16 bits")
      ->check(CLI::IsMember({"float", "int16"}));
  command.add_option("--format", options->format, "The form of the int8 file: qdq (default) or qoperator")
      ->check(CLI::IsMember({"qdq", "qoperator"}));
  command
      .add_option("--report", options->report,
                  "Also write a page with sizes, times, losses of accuracy, histograms and reasons")
      ->type_name("FILE.html")
      ->excludes(&calibrated);
  command.add_flag("--json", options->json, "Print one JSON object instead of sentences");
  add_dataless_options(command, options->dataless);
  command.callback([options] {
    options->asked_for_dataless = options->dataless.any();
    if (options->calibration.data.sources.empty() && options->calibrated.empty()) {
      if (needs_samples(*options)) throw UsageError("quantize: an option that measures needs --data");
      if (!options->asked_for_dataless) options->dataless.dynamic = true;
    }
    if (options->recovery.any() && options->calibration.data.sources.empty())
      throw UsageError("quantize: an option that measures needs --data, not --calibration");
    if (!options->recovery.fallback.empty() && !options->recovery.targeted())
      throw UsageError("quantize: --fallback needs --target-sqnr or --target-top1");
    quantize(*options);
  });
}

}  // namespace tool
