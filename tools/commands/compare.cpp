// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.hpp"
#include "data/data.hpp"
#include "shared/comparison.hpp"
#include "shared/json.hpp"
#include "shared/model.hpp"
#include "shared/progress.hpp"

namespace tool {

namespace {

struct CompareOptions {
  std::string a, b, labels;
  bool json = false;
  DataOptions data;
};

void check_alike(const qmodel *a, const qmodel *b) {
  if (qmodel_input_count(a) != qmodel_input_count(b) || qmodel_output_count(a) != qmodel_output_count(b))
    throw Failure("the models do not compare: " + std::to_string(qmodel_input_count(a)) + " inputs and " +
                  std::to_string(qmodel_output_count(a)) + " outputs, against " +
                  std::to_string(qmodel_input_count(b)) + " and " + std::to_string(qmodel_output_count(b)));
}

Comparison compare_models(const CompareOptions &options) {
  const Model a = load_model(options.a), b = load_model(options.b);
  check_alike(a.get(), b.get());
  const std::unique_ptr<Samples> samples = open_data(options.data, a.get());
  const size_t batch = batch_size(a.get(), *samples, 0);
  std::vector<int64_t> labels;
  if (!options.labels.empty()) labels = read_labels(options.labels, samples->count());
  Comparison comparison(a.get());
  const Session session_a = open_session(a.get(), "", 0), session_b = open_session(b.get(), "", 0);
  Progress progress;
  for (size_t first = 0; first < samples->count(); first += batch) {
    const auto inputs = samples->read(first, std::min(batch, samples->count() - first));
    comparison.add(run_session(a.get(), session_a.get(), inputs), run_session(b.get(), session_b.get(), inputs),
                   labels);
    progress.at("comparing", std::min(first + batch, samples->count()), samples->count());
  }
  return comparison;
}

void print_comparison_as_json(const Comparison &comparison, bool labelled) {
  nlohmann::ordered_json json = json_of(comparison);
  const Top1 &top1 = comparison.top1;
  if (labelled) {
    json["top1_a"] = top1.fraction(top1.right_a);
    json["top1_b"] = top1.fraction(top1.right_b);
  }
  print_json(stdout, json);
}

void print_comparison_as_text(const Comparison &comparison, bool labelled) {
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

void compare(const CompareOptions &options) {
  const Comparison comparison = compare_models(options);
  (options.json ? print_comparison_as_json : print_comparison_as_text)(comparison, !options.labels.empty());
}

}  // namespace

void add_compare(CLI::App &app) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App &command = *app.add_subcommand("compare", "Compare the outputs of two models on data");
  command.add_option("A.onnx", options->a, "The model that is taken to be right")->required();
  command.add_option("B.onnx", options->b, "The model to judge")->required();
  add_data_options(command, options->data)->required();
  command.add_option("--labels", options->labels, "Class numbers, for top-1 of both")->type_name("FILE.npy");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.callback([options] { compare(*options); });
}

}  // namespace tool
