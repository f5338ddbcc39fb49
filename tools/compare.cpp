// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "data.hpp"
#include "model.hpp"
#include "progress.hpp"

namespace tool {

namespace {

struct Options {
  std::string a, b, labels;
  bool json = false;
  DataOptions data;
};

constexpr double kInfinite = 999;  // JSON has no infinity: the SQNR of equal outputs

// Sums over all samples, from which the figures of one output follow. The first model is the signal.
struct Difference {
  double signal = 0, noise = 0, other = 0, product = 0, largest = 0;

  void add(const std::vector<double> &a, const std::vector<double> &b) {
    for (size_t i = 0; i < a.size(); ++i) {
      const double error = a[i] - b[i];
      signal += a[i] * a[i];
      other += b[i] * b[i];
      product += a[i] * b[i];
      noise += error * error;
      largest = std::isnan(error) ? error : std::max(largest, std::abs(error));
    }
  }

  double sqnr_db() const {
    if (noise == 0) return kInfinite;
    return signal == 0 ? -kInfinite : std::min(10 * std::log10(signal / noise), kInfinite);
  }

  double cosine() const {
    if (noise == 0) return 1;
    return signal == 0 || other == 0 ? 0 : std::min(product / (std::sqrt(signal) * std::sqrt(other)), 1.0);
  }
};

// Which class wins, for outputs [batch, classes].
struct Top1 {
  size_t samples = 0, agree = 0, right_a = 0, right_b = 0;

  void add(const std::vector<double> &a, const std::vector<double> &b, size_t classes,
           const std::vector<int64_t> &labels) {
    for (size_t at = 0; at + classes <= a.size(); at += classes, ++samples) {
      const int64_t winner_a = winner(a, at, classes), winner_b = winner(b, at, classes);
      agree += winner_a == winner_b;
      if (labels.empty()) continue;
      const int64_t label = labels.at(samples);
      if (label < 0 || label >= static_cast<int64_t>(classes))
        throw Failure("label " + std::to_string(label) + " of sample " + std::to_string(samples) +
                      " is no class: the output has " + std::to_string(classes));
      right_a += winner_a == label;
      right_b += winner_b == label;
    }
  }

  double fraction(size_t count) const { return static_cast<double>(count) / static_cast<double>(samples); }

 private:
  static int64_t winner(const std::vector<double> &values, size_t at, size_t classes) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(at);
    return std::max_element(first, first + static_cast<std::ptrdiff_t>(classes)) - first;
  }
};

struct Comparison {
  std::vector<std::string> names;
  std::vector<Difference> outputs;
  Top1 top1;
  bool has_top1 = true;
};

void check_alike(const qmodel *a, const qmodel *b) {
  if (qmodel_input_count(a) != qmodel_input_count(b) || qmodel_output_count(a) != qmodel_output_count(b))
    throw Failure("the models do not compare: " + std::to_string(qmodel_input_count(a)) + " inputs and " +
                  std::to_string(qmodel_output_count(a)) + " outputs, against " +
                  std::to_string(qmodel_input_count(b)) + " and " + std::to_string(qmodel_output_count(b)));
}

void add_samples(Comparison &comparison, const std::vector<Tensor> &a, const std::vector<Tensor> &b,
                 const std::vector<int64_t> &labels) {
  for (size_t i = 0; i < a.size(); ++i) {
    const Shape shape = shape_of(a[i].get()), other = shape_of(b[i].get());
    if (shape != other)
      throw Failure("output '" + comparison.names[i] + "' has shape " + shape_text(shape) + " in one model and " +
                    shape_text(other) + " in the other");
    const std::vector<double> values_a = values_of(a[i].get()), values_b = values_of(b[i].get());
    comparison.outputs[i].add(values_a, values_b);
    if (i > 0) continue;
    comparison.has_top1 = shape.size() == 2 && shape[1] > 0;
    if (comparison.has_top1)
      comparison.top1.add(values_a, values_b, static_cast<size_t>(shape[1]), labels);
    else if (!labels.empty())
      throw Failure("labels need a first output of shape [batch, classes], '" + comparison.names[0] + "' is " +
                    shape_text(shape));
  }
}

Comparison compare_models(const Options &options) {
  const Model a = load_model(options.a), b = load_model(options.b);
  check_alike(a.get(), b.get());
  const std::unique_ptr<Samples> samples = open_data(options.data, a.get());
  const size_t batch = batch_size(a.get(), *samples, 0);
  std::vector<int64_t> labels;
  if (!options.labels.empty()) {
    labels = read_labels(options.labels);
    if (labels.size() != samples->count())
      throw Failure(options.labels + ": holds " + std::to_string(labels.size()) + " labels for " +
                    std::to_string(samples->count()) + " samples");
  }
  Comparison comparison;
  for (size_t i = 0; i < qmodel_output_count(a.get()); ++i)
    comparison.names.emplace_back(qmodel_output_name(a.get(), i));
  comparison.outputs.resize(comparison.names.size());
  const Session session_a = open_session(a.get(), "", 0), session_b = open_session(b.get(), "", 0);
  Progress progress;
  for (size_t first = 0; first < samples->count(); first += batch) {
    const auto inputs = samples->read(first, std::min(batch, samples->count() - first));
    add_samples(comparison, run_session(a.get(), session_a.get(), inputs),
                run_session(b.get(), session_b.get(), inputs), labels);
    progress.at("comparing", std::min(first + batch, samples->count()), samples->count());
  }
  return comparison;
}

void print_json(const Comparison &comparison, bool labelled) {
  nlohmann::ordered_json json;
  json["outputs"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < comparison.outputs.size(); ++i) {
    const Difference &output = comparison.outputs[i];
    json["outputs"].push_back({{"name", comparison.names[i]},
                               {"sqnr_db", output.sqnr_db()},
                               {"cosine", output.cosine()},
                               {"max_abs", output.largest}});
  }
  const Top1 &top1 = comparison.top1;
  json["top1_agreement"] = nullptr;
  if (comparison.has_top1) json["top1_agreement"] = top1.fraction(top1.agree);
  if (labelled) {
    json["top1_a"] = top1.fraction(top1.right_a);
    json["top1_b"] = top1.fraction(top1.right_b);
  }
  std::printf("%s\n", json.dump().c_str());
}

void print_text(const Comparison &comparison, bool labelled) {
  std::printf("%-24s %10s %10s %12s\n", "output", "SQNR dB", "cosine", "max |a-b|");
  for (size_t i = 0; i < comparison.outputs.size(); ++i) {
    const Difference &output = comparison.outputs[i];
    std::printf("%-24s ", comparison.names[i].c_str());
    if (output.noise == 0)
      std::printf("%10s", "inf");
    else
      std::printf("%10.2f", output.sqnr_db());
    std::printf(" %10.6f %12.6g\n", output.cosine(), output.largest);
  }
  const Top1 &top1 = comparison.top1;
  if (comparison.has_top1) std::printf("top-1 agreement %.2f %%\n", 100 * top1.fraction(top1.agree));
  if (labelled)
    std::printf("top-1 a %.2f %%, b %.2f %%\n", 100 * top1.fraction(top1.right_a), 100 * top1.fraction(top1.right_b));
}

void compare(const Options &options) {
  const Comparison comparison = compare_models(options);
  (options.json ? print_json : print_text)(comparison, !options.labels.empty());
}

}  // namespace

void add_compare(CLI::App &app) {
  const auto options = std::make_shared<Options>();
  CLI::App &command = *app.add_subcommand("compare", "Compare the outputs of two models on data");
  command.add_option("A.onnx", options->a, "The model that is right")->required();
  command.add_option("B.onnx", options->b, "The model to judge")->required();
  add_data_options(command, options->data)->required();
  command.add_option("--labels", options->labels, "Class numbers, for top-1 of both")->type_name("FILE.npy");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.callback([options] { compare(*options); });
}

}  // namespace tool
