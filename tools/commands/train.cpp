// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>

#include "commands/commands.hpp"
#include "data/file.hpp"
#include "data/outputs.hpp"
#include "report/training_page.hpp"
#include "shared/calibration.hpp"
#include "shared/checks.hpp"
#include "shared/interrupt.hpp"
#include "shared/model.hpp"
#include "shared/progress.hpp"
#include "shared/training.hpp"

namespace tool {

namespace {

constexpr size_t kCalibrated = 512;  // samples at most

struct TrainOptions {
  std::string input, output, labels, validation_labels, report, config;  // config "": onnx with equalization
  std::vector<std::string> validation, words;                            // words of the command line
  DataOptions data;
  bool qat = false;
  int32_t weight_bits = 0, activation_bits = 0;  // 0: as the configuration says
  std::optional<double> lr;
  TrainingOptions training;
};

// Fine-tuning takes few epochs at a low rate; SGD takes a higher one than optimizers that divide by the size of
// gradients.
void fill_defaults(TrainOptions &options) {
  TrainingOptions &training = options.training;
  const bool sgd = training.optimizer == "sgd";
  if (training.epochs == 0) training.epochs = options.qat ? 5 : 20;
  if (sgd && !training.momentum) training.momentum = 0.9;
  training.freezes = options.qat;
  training.lr = options.lr.value_or(sgd ? (options.qat ? 0.01 : 0.05) : (options.qat ? 0.0005 : 0.003));
}

void check_usage(const TrainOptions &options) {
  const TrainingOptions &training = options.training;
  if (!training.checkpoint.empty() && !training.checkpoint.ends_with(".safetensors"))
    throw UsageError("train: --checkpoint " + training.checkpoint + ": needs a name that ends in .safetensors");
  if (training.momentum && training.optimizer != "sgd")
    throw UsageError("train: --momentum is for --optimizer sgd, this is " + training.optimizer);
}

Model prepare_and_calibrate(const qmodel *model, const TrainOptions &options, const LabelledSamples &data) {
  const Config config = open_config(options.config.empty() ? "onnx" : options.config);
  const Attrs settings = make<Attrs>(qattrs_create);
  if (options.config.empty()) check(qattrs_set_int(settings.get(), "equalize", 1));
  if (options.weight_bits > 0) check(qattrs_set_int(settings.get(), "weight_bits", options.weight_bits));
  if (options.activation_bits > 0) check(qattrs_set_int(settings.get(), "activation_bits", options.activation_bits));
  check(qconfig_set(config.get(), "*", settings.get()));
  Model prepared = make<Model>(qmodel_prepare, model, config.get(), QTN_QAT);
  const size_t batch = std::max<size_t>(fixed_batch(model), 1);
  const size_t batches = std::max<size_t>(std::min(kCalibrated, data.count()) / batch, 1);
  Progress progress;
  for (size_t i = 0; i < batches; ++i) {
    std::vector<size_t> indices(batch);
    std::iota(indices.begin(), indices.end(), i * (data.count() / batch) / batches * batch);
    const Batch samples = data.read(indices);
    const std::vector<const qtensor *> inputs = borrow(samples.inputs);
    check(qmodel_calibrate(prepared.get(), inputs.data(), inputs.size()));
    progress.at("calibrating", i + 1, batches);
  }
  return prepared;
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::vector<std::pair<std::string, std::string>> settings_of(const TrainOptions &options, const Training &training) {
  const TrainingOptions &o = options.training;
  std::vector<std::pair<std::string, std::string>> settings = {{"epochs", std::to_string(o.epochs)},
                                                               {"batch", std::to_string(training.batch())},
                                                               {"optimizer", o.optimizer},
                                                               {"learning rate", text_of(o.lr)},
                                                               {"schedule", o.schedule},
                                                               {"warmup steps", std::to_string(o.warmup)},
                                                               {"seed", std::to_string(o.seed)}};
  if (o.momentum) settings.emplace_back("momentum", text_of(*o.momentum));
  if (o.weight_decay) settings.emplace_back("weight decay", text_of(*o.weight_decay));
  if (!options.qat) return settings;
  settings.emplace_back("configuration", options.config.empty() ? "onnx, equalized" : options.config);
  if (options.weight_bits > 0) settings.emplace_back("weight bits", std::to_string(options.weight_bits));
  if (options.activation_bits > 0) settings.emplace_back("activation bits", std::to_string(options.activation_bits));
  return settings;
}

// Pipes and devices have no size.
void print_result(std::FILE *talk, const TrainOptions &options, const Training &training,
                  const TrainingReport &report) {
  const auto kib = [](const std::string &path) { return static_cast<double>(file_bytes(path)) / 1024; };
  const size_t epochs = options.training.epochs;
  if (training.interrupted())
    std::fprintf(talk, "stopped by Ctrl-C in epoch %zu of %zu\n",
                 training.epochs().empty() ? training.best().epoch : training.epochs().back().number, epochs);
  const double before = kib(options.input), after = kib(options.output);
  std::fprintf(talk, "%s: ", options.output.c_str());
  if (after > 0) std::fprintf(talk, "%.1f KiB, ", after);
  std::fprintf(talk, "epoch %zu of %zu", training.best().epoch, epochs);
  if (options.qat && before > 0 && after > 0)
    std::fprintf(talk, " (%s: %.1f KiB, ratio %.2f)", options.input.c_str(), before, before / after);
  const Accuracies &top1 = report.accuracies;
  std::fprintf(talk, "\ntop-1 on %s: before %.2f %%", report.judged.c_str(), 100 * top1.before);
  if (top1.calibrated) std::fprintf(talk, ", calibrated %.2f %%", 100 * *top1.calibrated);
  std::fprintf(talk, ", %s %.2f %%\n", options.qat ? "converted" : "trained", 100 * top1.after);
}

void train(const TrainOptions &options) {
  const Model model = load_model(options.input);
  const LabelledSamples data(options.data, options.labels, model.get());
  std::optional<LabelledSamples> validation;
  if (!options.validation.empty()) {
    DataOptions validation_data = options.data;
    validation_data.sources = options.validation;
    validation.emplace(validation_data, options.validation_labels, model.get());
  }
  const std::string &checkpoint = options.training.checkpoint;
  const std::vector<std::string> outputs = {options.output, options.report, options.training.log, checkpoint,
                                            checkpoint.empty() ? "" : best_path(checkpoint)};
  std::vector<std::string> read = data.files();
  if (validation)
    for (std::string &path : validation->files()) read.push_back(std::move(path));
  read.push_back(config_file(options.config));
  check_outputs(outputs, read, options.input);
  std::FILE *const talk = talk_beside(outputs);
  const LabelledSamples &judges = validation ? *validation : data;
  const Model prepared = options.qat ? prepare_and_calibrate(model.get(), options, data) : nullptr;
  Training training(options.qat ? prepared.get() : model.get(), data, validation ? &*validation : nullptr,
                    options.training);
  const auto top1_of = [&](const qmodel *m) {
    const Session session = open_session(m, "", 0);
    return score(answer_of(m, session.get()), judges, judges.count(), training.batch()).top1;
  };
  TrainingReport report{options.input, options.output, options.words, settings_of(options, training), {}, {}};
  report.judged = (validation ? options.validation.front() : options.data.sources.front()) + " (" +
                  std::to_string(judges.count()) + " samples" + (validation ? ")" : ", which it was trained on)");
  // A file in training mode does not run; what a trainer makes of it does.
  const Model before = make<Model>(qtrainer_model, make<Trainer>(qtrainer_create, model.get(), nullptr).get());
  report.accuracies.before = top1_of(before.get());
  if (options.qat) report.accuracies.calibrated = training.top1();
  training.run();
  report.accuracies.after = training.best().top1;
  if (options.qat) {
    const Model converted = make<Model>(qmodel_convert, training.best().model.get(), nullptr);
    write_whole([&] { return qmodel_save(converted.get(), options.output.c_str(), nullptr); });
  } else {
    write_whole([&] { return qmodel_save(training.best().model.get(), options.output.c_str(), nullptr); });
  }
  print_result(talk, options, training, report);
  if (options.report.empty()) return;
  write_training_report(options.report, report, training);
  std::fprintf(talk, "%s: report\n", options.report.c_str());
}

CLI::Validator bits() {
  return number_that<int32_t>([](int32_t n) { return n >= 2 && n <= 8; }, "a number of bits from 2 to 8");
}

CLI::Validator rate() {
  return number_that<double>([](double x) { return x > 0 && std::isfinite(x); }, "a positive number");
}

CLI::Validator decay() {
  return number_that<double>([](double x) { return x >= 0 && std::isfinite(x); }, "a number from 0 up");
}

CLI::Validator below_1() {
  return number_that<double>([](double x) { return x >= 0 && x < 1; }, "a number from 0 up and below 1");
}

CLI::Validator seed() {
  return number_that<int64_t>([](int64_t) { return true; }, "a whole number of 64 bits");
}

void add_quantization_options(CLI::App &command, TrainOptions &options) {
  CLI::Option *qat = command.add_flag(
      "--qat", options.qat, "Quantization-aware: calibrate, train on these scales, and write the converted int8 model");
  command
      .add_option("--config", options.config, "Recipe or file NAME.json, as for quantize (default: onnx, equalized)")
      ->type_name("NAME")
      ->needs(qat);
  command
      .add_option("--weight-bits", options.weight_bits,
                  "Bits of a weight, 2 to 8 (default 8); 2 to 4 are stored in 4, 5 to 8 in 8")
      ->type_name("N")
      ->check(bits())
      ->needs(qat);
  command.add_option("--activation-bits", options.activation_bits, "Bits of an activation, 2 to 8 (default 8)")
      ->type_name("N")
      ->check(bits())
      ->needs(qat);
}

void add_course_options(CLI::App &command, TrainOptions &options) {
  TrainingOptions &training = options.training;
  command.add_option("--epochs", training.epochs, "Passes through the data (default 20; with --qat 5)")
      ->type_name("N")
      ->check(positive_count());
  command.add_option("--batch", training.batch, "Samples in a step (default: the batch that the model fixes, else 32)")
      ->type_name("N")
      ->check(positive_count());
  command.add_option("--lr", options.lr, "Learning rate (default 0.003, with --qat 0.0005; for sgd 0.05 and 0.01)")
      ->type_name("F")
      ->check(rate());
  command.add_option("--optimizer", training.optimizer, "sgd, adam or adamw (default)")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}));
  command.add_option("--momentum", training.momentum, "Momentum of sgd (default 0.9)")
      ->type_name("F")
      ->check(below_1());
  command.add_option("--weight-decay", training.weight_decay, "Decay of weights (default 0; for adamw 0.01)")
      ->type_name("F")
      ->check(decay());
  command.add_option("--schedule", training.schedule, "constant, or cosine (default) down to 1 % of the rate")
      ->check(CLI::IsMember({"constant", "cosine"}));
  command.add_option("--warmup", training.warmup, "Steps at the beginning in which the rate rises (default 0)")
      ->type_name("N")
      ->check(positive_count());
  command.add_option("--seed", training.seed, "Decides the order of samples and what Dropout drops (default 0)")
      ->type_name("N")
      ->check(seed());
}

}  // namespace

void add_train(CLI::App &app, std::vector<std::string> words) {
  const auto options = std::make_shared<TrainOptions>();
  options->words = std::move(words);
  options->training.optimizer = "adamw";
  options->training.schedule = "cosine";
  CLI::App &command = *app.add_subcommand("train", "Train a float model, or one that is quantized while it learns");
  command.add_option("MODEL.onnx", options->input, "Float model: a classifier")->required();
  command.add_option("-o,--output", options->output, "Trained model to write, that of the best epoch")
      ->type_name("OUT.onnx")
      ->required();
  add_data_options(command, options->data)->required();
  command.add_option("--labels", options->labels, "Class numbers, one for each sample")
      ->type_name("FILE.npy")
      ->required();
  CLI::Option *validation =
      command
          .add_option("--validation", options->validation, "Samples that judge the epochs (default: those of --data)")
          ->type_name("DATA")
          ->allow_extra_args(false);
  CLI::Option *validation_labels =
      command.add_option("--validation-labels", options->validation_labels, "The class numbers of these samples")
          ->type_name("FILE.npy")
          ->needs(validation);
  validation->needs(validation_labels);
  add_quantization_options(command, *options);
  add_course_options(command, *options);
  CLI::Option *checkpoint =
      command.add_option("--checkpoint", options->training.checkpoint, "Written after every epoch, to resume from")
          ->type_name("FILE.safetensors");
  command.add_flag("--resume", options->training.resume, "Resume from --checkpoint")->needs(checkpoint);
  command.add_option("--log", options->training.log, "A line of JSON for every epoch")->type_name("FILE.jsonl");
  command.add_option("--report", options->report, "Also write a page with curves, settings and accuracies")
      ->type_name("FILE.html");
  command.callback([options] {
    check_usage(*options);
    fill_defaults(*options);
    train(*options);
  });
}

}  // namespace tool
