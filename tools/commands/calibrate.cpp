// SPDX-License-Identifier: Apache-2.0
// `calibrate` and `merge`: calibration by several processes, put together before `quantize --calibration`.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "commands/commands.hpp"
#include "data/outputs.hpp"
#include "shared/calibration.hpp"
#include "shared/checkpoint.hpp"
#include "shared/interrupt.hpp"
#include "shared/model.hpp"
#include "shared/progress.hpp"

namespace tool {

namespace {

struct CalibrateOptions {
  std::string input, output, shard, checkpoint;
  bool resume = false;
  CalibrationOptions calibration;
};

struct MergeOptions {
  std::string output;
  std::vector<std::string> parts;
};

Shard parse_shard(const std::string &text) {
  if (text.empty()) return {};
  size_t number = 0, count = 0;
  const char *end = text.data() + text.size();
  const auto [slash, number_error] = std::from_chars(text.data(), end, number);
  const auto [stop, count_error] = std::from_chars(std::min(slash + 1, end), end, count);
  const bool right = number_error == std::errc() && count_error == std::errc() && *slash == '/' && stop == end;
  if (!right || number == 0 || number > count || count > 1000000)
    throw UsageError("--shard " + text + ": needs I/N, the I-th of N shares, for example 1/4");
  return {number - 1, count};
}

// Which samples are meant, so that a checkpoint does not go on with others.
std::string told(const CalibrateOptions &options, const CalibrationData &data) {
  const DataOptions &given = options.calibration.data;
  std::string text;
  for (const std::string &source : given.sources) text += (text.empty() ? "" : " ") + source;
  for (const auto &[name, value] : {std::pair<const char *, const std::string &>{" --size ", given.size},
                                    {" --mean ", given.mean},
                                    {" --std ", given.std},
                                    {" --layout ", given.layout},
                                    {" --channels ", given.channels},
                                    {" --shard ", options.shard}})
    if (!value.empty()) text += name + value;
  return text + " (" + std::to_string(data.samples()) + " samples)";
}

void calibrate_model(const CalibrateOptions &options) {
  const Shard shard = parse_shard(options.shard);
  const Model model = load_model(options.input);
  const CalibrationData data(options.calibration, model.get(), shard);
  Checkpoint checkpoint(options.checkpoint, told(options, data));
  std::vector<std::string> read = data.files();
  read.push_back(config_file(options.calibration.config));
  check_outputs({options.output, checkpoint.path(), checkpoint.beside()}, read, options.input);
  std::FILE *const talk = talk_beside({options.output});
  const Config config = make_config(options.calibration);
  const Model prepared = make<Model>(qmodel_prepare, model.get(), config.get(), QTN_PTQ);
  std::optional<Interrupt> interrupt;
  if (!options.checkpoint.empty()) interrupt.emplace();
  const size_t first = options.resume ? checkpoint.resume(prepared.get()) : 0;
  {
    Progress progress;
    for (size_t i = first; i < data.batches(); ++i) {
      const std::vector<Tensor> inputs = data.read(i);
      const std::vector<const qtensor *> pointers = borrow(inputs);
      check(qmodel_calibrate(prepared.get(), pointers.data(), pointers.size()));
      progress.at("calibrating", i + 1, data.batches());
      if (i + 1 == data.batches()) break;
      const bool asked = interrupt && interrupt->asked();
      checkpoint.write(prepared.get(), i + 1, asked);
      if (asked)
        throw Failure("stopped after " + std::to_string(i + 1) + " of " + std::to_string(data.batches()) +
                      " batches; --resume goes on from " + checkpoint.path());
    }
  }
  write_whole([&] { return qmodel_save_calibration(prepared.get(), options.output.c_str()); });
  checkpoint.remove();
  std::fprintf(talk, "%s: calibrated with %zu samples\n", options.output.c_str(), data.samples());
}

void merge(const MergeOptions &options) {
  check_outputs({options.output}, options.parts);
  std::FILE *const talk = talk_beside({options.output});
  std::vector<const char *> parts;
  for (const std::string &part : options.parts) parts.push_back(part.c_str());
  write_whole([&] { return qmodel_merge_calibrations(options.output.c_str(), parts.data(), parts.size()); });
  std::fprintf(talk, "%s: merged from %zu files\n", options.output.c_str(), parts.size());
}

}  // namespace

void add_calibrate(CLI::App &app) {
  const auto options = std::make_shared<CalibrateOptions>();
  CLI::App &command =
      *app.add_subcommand("calibrate", "Run samples through a float model and save the ranges of its values");
  command.add_option("IN.onnx", options->input, "Float model")->required();
  command.add_option("-o,--output", options->output, "Calibration file to write")->type_name("OUT.qcal")->required();
  add_calibration_options(command, options->calibration)->required();
  command.add_option("--shard", options->shard, "Take only the I-th of N equal shares of the samples")
      ->type_name("I/N");
  CLI::Option *checkpoint =
      command
          .add_option("--checkpoint", options->checkpoint,
                      "Written every few seconds and at Ctrl-C, to resume from; removed at the end")
          ->type_name("FILE.safetensors");
  command.add_flag("--resume", options->resume, "Go on from --checkpoint, where there is one")->needs(checkpoint);
  command.callback([options] { calibrate_model(*options); });
}

void add_merge(CLI::App &app) {
  const auto options = std::make_shared<MergeOptions>();
  CLI::App &command = *app.add_subcommand("merge", "Add up calibration files of one model");
  command.add_option("PART.qcal", options->parts, "Calibration files")->required();
  command.add_option("-o,--output", options->output, "Calibration file to write")->type_name("OUT.qcal")->required();
  command.callback([options] { merge(*options); });
}

}  // namespace tool
