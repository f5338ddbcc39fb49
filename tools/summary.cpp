// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "model.hpp"
#include "timing.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMeasuredSeconds = 0.2;

// Below these a network seldom does what it did.
constexpr double kLowDecibels = 20, kLowAgreement = 0.95;

// What the report writes as null is infinite.
double number_of(const Json &value) { return value.is_null() ? INFINITY : value.get<double>(); }

std::string text(const char *format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

double milliseconds(const qmodel *model, const std::vector<Tensor> &inputs) {
  const Session session = open_session(model, "", 0);
  return percentile(measure(model, session.get(), inputs, kMeasuredSeconds).wall, 0.5);
}

bool is_low(const Json &accuracy) {
  return number_of(accuracy.at("sqnr_db")) < kLowDecibels || accuracy.value("top1_agreement", 1.0) < kLowAgreement;
}

// What a user can still do where the result is not near enough.
std::string next_step(const Json &accuracy, bool automatic, bool targeted) {
  if (!is_low(accuracy) || targeted) return "";
  const double db = number_of(accuracy.at("sqnr_db"));
  const std::string target = "--target-sqnr " + text("%.0f", std::max(25.0, std::ceil(db) + 5));
  return automatic ? "try " + target + ", which leaves some layers in float, or train with `qtensor train --qat`"
                   : "try --auto, or " + target + ", which leaves some layers in float";
}

void print_trials(const Json &trials) {
  const char *separator = "tried: ";
  for (const Json &trial : trials) {
    std::printf("%s%s %.1f dB%s", separator, trial.at("name").get<std::string>().c_str(),
                number_of(trial.at("sqnr_db")), trial.at("kept").get<bool>() ? " (kept)" : "");
    separator = ", ";
  }
  if (!trials.empty()) std::printf("\n");
}

void print_accuracy(const Json &accuracy, bool held_back) {
  const size_t samples = accuracy.at("samples").get<size_t>();
  if (!held_back)
    std::printf("accuracy on the sample that calibrated");
  else
    std::printf("accuracy on %zu held-back sample%s", samples, samples > 1 ? "s" : "");
  std::printf(": SQNR %.1f dB", number_of(accuracy.at("sqnr_db")));
  if (accuracy.contains("top1_agreement"))
    std::printf(", %.1f %% of the decisions as in float", 100 * accuracy.at("top1_agreement").get<double>());
  std::printf("\n");
}

// Operators in float with how many nodes of each, and why.
void print_nodes(const Json &nodes, const Json &float_nodes) {
  std::printf("nodes: %zu of %zu in int8\n", nodes.at("int8").get<size_t>(), nodes.at("all").get<size_t>());
  std::map<std::string, size_t> counts;
  for (const Json &node : float_nodes)
    ++counts[node.at("op").get<std::string>() + ": " + node.at("reason").get<std::string>()];
  for (const auto &[what, count] : counts) std::printf("  in float: %zu %s\n", count, what.c_str());
}

void print_choices(const Json &observers) {
  for (const Json &choice : observers) {
    std::printf("%s: %s (", choice.at("tensor").get<std::string>().c_str(),
                choice.at("chosen").get<std::string>().c_str());
    const char *separator = "";
    for (const Json &candidate : choice.at("candidates")) {
      std::printf("%s%s %.1f dB", separator, candidate.at("observer").get<std::string>().c_str(),
                  number_of(candidate.at("sqnr_db")));
      separator = ", ";
    }
    std::printf(")\n");
  }
}

void print_fallen(const Json &layers, const char *how) {
  for (const Json &layer : layers)
    std::printf("%s: %s (alone it costs down to %.1f dB)\n", layer.at("node").get<std::string>().c_str(), how,
                number_of(layer.at("alone_sqnr_db")));
}

}  // namespace

Json node_counts(const qmodel *model) {
  const Json nodes = Json::parse(text_of(make<Blob>(qmodel_inspect, model).get())).at("nodes");
  const auto int8 =
      std::count_if(nodes.begin(), nodes.end(), [](const Json &node) { return node.at("dtype") == "int8"; });
  return {{"all", nodes.size()}, {"int8", int8}};
}

Json summarize(const Quantization &q) {
  const std::vector<Tensor> inputs = q.data.read(0);
  const double real = milliseconds(q.real, inputs), quantized = milliseconds(q.quantized, inputs);
  Json summary;
  summary["accuracy"] = q.outcome.at("accuracy");
  summary["trials"] = q.outcome.at("trials");
  summary["nodes"] = node_counts(q.quantized);
  summary["speed"] = {{"batch", q.data.samples() / q.data.batches()}, {"float_ms", real}, {"int8_ms", quantized}};
  summary["warnings"] = q.outcome.at("warnings");
  if (is_low(summary["accuracy"])) summary["warnings"].push_back("the quantized model is far from the float one");
  summary["next"] = next_step(summary["accuracy"], q.automatic, !q.outcome.at("targets").empty());
  return summary;
}

void print_summary(const Json &summary, const Json &outcome) {
  print_trials(summary.at("trials"));
  print_choices(outcome.at("observers"));
  print_fallen(outcome.at("in_float"), "left in float");
  print_fallen(outcome.at("in_int16"), "activations of 16 bits");
  for (const auto &[name, target] : outcome.at("targets").items())
    std::printf("%s %g: %s, %g\n", name.c_str(), target.at("wanted").get<double>(),
                target.at("holds").get<bool>() ? "reached" : "NOT reached", number_of(target.at("reached")));
  print_accuracy(summary.at("accuracy"), outcome.at("samples") != 1);
  print_nodes(summary.at("nodes"), outcome.at("float_nodes"));
  const Json &speed = summary.at("speed");
  const double real = speed.at("float_ms").get<double>(), quantized = speed.at("int8_ms").get<double>();
  std::printf("speed: %.3g ms, in float here %.3g ms: %.1f times as fast (batch %zu)\n", quantized, real,
              real / quantized, speed.at("batch").get<size_t>());
  std::fflush(stdout);
  for (const Json &warning : summary.at("warnings"))
    std::fprintf(stderr, "qtensor: warning: %s\n", warning.get<std::string>().c_str());
  if (const std::string next = summary.at("next"); !next.empty()) std::printf("next: %s\n", next.c_str());
}

}  // namespace tool
