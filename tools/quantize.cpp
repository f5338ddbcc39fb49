// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.hpp"
#include "dataless.hpp"
#include "file.hpp"
#include "model.hpp"
#include "quantizing.hpp"
#include "report.hpp"

namespace tool {

namespace {

// What is asked of qmodel_quantize besides calibration.
struct Recovery {
  bool plain = false, absorb_bias = false, adaround = false, automatic = false;
  std::optional<bool> bias_correction;
  std::optional<double> smooth, target_sqnr, target_top1;
  std::string fallback;

  bool targeted() const { return target_sqnr || target_top1; }
  bool any() const { return plain || absorb_bias || bias_correction || adaround || automatic || smooth || targeted(); }
};

struct Options {
  std::string input, output, calibrated, format = "qdq", report;
  std::vector<std::string> words;  // of the command line
  CalibrationOptions calibration;
  Recovery recovery;
  DatalessOptions dataless;
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

// What the report writes as null is infinite.
double number_of(const nlohmann::ordered_json &value) { return value.is_null() ? INFINITY : value.get<double>(); }

void print_fallen(const nlohmann::ordered_json &layers, const char *how) {
  for (const auto &layer : layers)
    std::printf("%s: %s (alone it costs down to %.1f dB)\n", layer.at("node").get<std::string>().c_str(), how,
                number_of(layer.at("alone_sqnr_db")));
}

// What was chosen by measuring, and why.
void print_choices(const nlohmann::ordered_json &report) {
  for (const auto &trial : report.at("trials"))
    std::printf("tried %s: %.2f dB%s\n", trial.at("name").get<std::string>().c_str(), number_of(trial.at("sqnr_db")),
                trial.at("kept").get<bool>() ? ", kept" : "");
  for (const auto &choice : report.at("observers")) {
    std::printf("%s: %s (", choice.at("tensor").get<std::string>().c_str(),
                choice.at("chosen").get<std::string>().c_str());
    const char *separator = "";
    for (const auto &candidate : choice.at("candidates")) {
      std::printf("%s%s %.1f dB", separator, candidate.at("observer").get<std::string>().c_str(),
                  number_of(candidate.at("sqnr_db")));
      separator = ", ";
    }
    std::printf(")\n");
  }
  print_fallen(report.at("in_float"), "left in float");
  print_fallen(report.at("in_int16"), "activations of 16 bits");
  for (const auto &[name, target] : report.at("targets").items())
    std::printf("%s %g: %s, %g\n", name.c_str(), target.at("wanted").get<double>(),
                target.at("holds").get<bool>() ? "reached" : "NOT reached", number_of(target.at("reached")));
  for (const char *done : {"equalized", "bias_corrected", "rounding_learned"})
    if (report.at(done).get<bool>()) std::printf("%s\n", done);
}

Model quantize_calibrated(const qmodel *model, const qconfig *config, const std::string &path) {
  const Model prepared = make<Model>(qmodel_prepare, model, config, QTN_PTQ);
  check(qmodel_load_calibration(prepared.get(), path.c_str()));
  return make<Model>(qmodel_convert, prepared.get(), nullptr);
}

void save(const qmodel *model, const Options &options, const std::string &how) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  check(qattrs_set_string(attrs.get(), "format", options.format.c_str()));
  check(qmodel_save(model, options.output.c_str(), attrs.get()));
  const double before = static_cast<double>(std::filesystem::file_size(options.input));
  const double after = static_cast<double>(std::filesystem::file_size(options.output));
  std::printf("%s: %.1f KiB, %s (%s: %.1f KiB, ratio %.2f)\n", options.output.c_str(), after / 1024, how.c_str(),
              options.input.c_str(), before / 1024, before / after);
}

void quantize(const Options &options) {
  const Model model = load_model(options.input);
  require_writable(options.output);
  const bool reported = !options.report.empty();
  if (reported) require_writable(options.report);
  const Config config = make_config(options.calibration);
  if (options.dataless.any()) {
    save(quantize_without_data(model.get(), config.get(), options.dataless).get(), options, "without samples");
    return;
  }
  if (!options.calibrated.empty()) {
    save(quantize_calibrated(model.get(), config.get(), options.calibrated).get(), options,
         "calibrated from " + options.calibrated);
    return;
  }
  const CalibrationData data(options.calibration, model.get(), {});
  const Quantized quantized = quantize_on(model.get(), config.get(), data, attrs_of(options.recovery, reported).get());
  print_choices(nlohmann::ordered_json::parse(quantized.report));
  save(quantized.model.get(), options, "calibrated with " + std::to_string(data.samples()) + " samples");
  if (!reported) return;
  write_report(options.report, {options.input, options.output, model.get(), quantized.model.get(), quantized.report,
                                data, options.calibration.data, options.words});
  std::printf("%s: report\n", options.report.c_str());
}

}  // namespace

void add_quantize(CLI::App &app, std::vector<std::string> words) {
  const auto options = std::make_shared<Options>();
  options->words = std::move(words);
  CLI::App &command =
      *app.add_subcommand("quantize", "Make an int8 model from a float model, with sample data or without");
  command.add_option("IN.onnx", options->input, "Float model")->required();
  command.add_option("-o,--output", options->output, "Quantized model to write")->type_name("OUT.onnx")->required();
  CLI::Option &data = *add_calibration_options(command, options->calibration);
  CLI::Option &calibrated =
      *command.add_option("--calibration", options->calibrated, "Instead of --data: a file of `calibrate` or `merge`")
           ->type_name("FILE.qcal")
           ->excludes(&data);
  command.add_flag("--plain", options->recovery.plain, "Calibrate and convert; try nothing that might be better");
  command.add_flag("--absorb-bias", options->recovery.absorb_bias,
                   "Move what channels in front of a Relu always exceed into the next layer's bias");
  command.add_flag_callback(
      "--bias-correction", [options] { options->recovery.bias_correction = true; },
      "Try to give the output channels of each layer the means that they have in float (default)");
  command.add_flag_callback(
      "--no-bias-correction", [options] { options->recovery.bias_correction = false; }, "Do not");
  command.add_flag("--adaround", options->recovery.adaround, "Learn which weights to round up (takes minutes)");
  command.add_option("--smooth", options->recovery.smooth, "SmoothQuant of this strength, 0 to 1")->type_name("F");
  command.add_flag("--auto", options->recovery.automatic,
                   "Measure, and choose observers, equalization and bias correction");
  command
      .add_option("--target-sqnr", options->recovery.target_sqnr,
                  "Leave the fewest layers in float with which outputs reach this ratio")
      ->type_name("DB");
  command
      .add_option("--target-top1", options->recovery.target_top1,
                  "The same for the fraction of samples whose largest value stays where it is in float")
      ->type_name("F");
  command
      .add_option("--fallback", options->recovery.fallback,
                  "What these layers become: float (default), or int16, activations of 16 bits")
      ->check(CLI::IsMember({"float", "int16"}));
  command.add_option("--format", options->format, "How int8 is written: qdq (default) or qoperator")
      ->check(CLI::IsMember({"qdq", "qoperator"}));
  command
      .add_option("--report", options->report, "Also write a page with sizes, times, damage, histograms and reasons")
      ->type_name("FILE.html")
      ->excludes(&calibrated);
  add_dataless_options(command, options->dataless);
  command.callback([options] {
    if (options->calibration.data.sources.empty() && options->calibrated.empty() && !options->dataless.any())
      throw UsageError("quantize: wants one of --data --calibration --dynamic --weights-only");
    if (options->recovery.any() && options->calibration.data.sources.empty())
      throw UsageError("quantize: what measures needs --data, not --calibration");
    if (!options->recovery.fallback.empty() && !options->recovery.targeted())
      throw UsageError("quantize: --fallback needs --target-sqnr or --target-top1");
    if (options->report == options->output) throw UsageError("quantize: --report and --output are the same file");
    quantize(*options);
  });
}

}  // namespace tool
