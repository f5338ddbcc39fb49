// SPDX-License-Identifier: Apache-2.0
#include "report/quantization_page.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/page.hpp"
#include "shared/comparison.hpp"
#include "shared/model.hpp"
#include "shared/progress.hpp"
#include "shared/timing.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kCompared = 32;  // batches at most, spread evenly
constexpr double kMeasuredSeconds = 0.5;

std::vector<std::string> data_words(const DataOptions &options) {
  std::vector<std::string> words;
  const auto add = [&](const char *option, const std::string &value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  for (const std::string &source : options.sources) add("--data", source);
  add("--size", options.size);
  add("--mean", options.mean);
  add("--std", options.std);
  add("--layout", options.layout);
  add("--channels", options.channels);
  return words;
}

Json commands(const ReportSource &source) {
  std::vector<std::string> compare = {"compare", source.input, source.output};
  const std::vector<std::string> data = data_words(source.data_options);
  compare.insert(compare.end(), data.begin(), data.end());
  return {command_line(source.command), command_line(compare), command_line({"bench", source.input, "--profile"}),
          command_line({"bench", source.output, "--profile"}), command_line({"inspect", source.output})};
}

Json compare(const ReportSource &source, const Session &real, const Session &int8) {
  Comparison comparison(source.real);
  const size_t batches = source.data.batches(), count = std::min(batches, kCompared);
  Progress progress;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<Tensor> inputs = source.data.read(i * batches / count);
    comparison.add(run_session(source.real, real.get(), inputs), run_session(source.int8, int8.get(), inputs), {});
    progress.at("comparing", i + 1, count);
  }
  return json_of(comparison);
}

Json speed(const qmodel *model, const Session &session, const std::vector<Tensor> &inputs) {
  const double ms = percentile(measure(model, session.get(), inputs, kMeasuredSeconds).wall, 0.5);
  Json json = profile(session.get(), inputs, 9);
  json["ms"] = ms;
  return json;
}

Json measured(const ReportSource &source) {
  const Session real = open_session(source.real, "", 0), int8 = open_session(source.int8, "", 0);
  const std::vector<Tensor> inputs = source.data.read(0);
  const Json outcome = Json::parse(source.outcome);
  Json data;
  data["version"] = library_version();
  data["date"] = date();
  const auto file = [](const std::string &path, const qmodel *model) {
    return Json{{"name", path}, {"bytes", stored_bytes(path, model)}};
  };
  data["files"] = {{"float", file(source.input, source.real)}, {"int8", file(source.output, source.int8)}};
  data["samples"] = {
      {"calibrated", source.data.samples()},
      {"compared", std::min(source.data.batches(), kCompared) * (source.data.samples() / source.data.batches())}};
  data["nodes"] = outcome.at("nodes");
  data["accuracy"] = compare(source, real, int8);
  const Json real_speed = speed(source.real, real, inputs), int8_speed = speed(source.int8, int8, inputs);
  data["speed"] = {{"batch", source.data.samples() / source.data.batches()},
                   {"threads", int8_speed.at("threads")},
                   {"isa", int8_speed.at("isa")},
                   {"float", real_speed},
                   {"int8", int8_speed}};
  data["commands"] = commands(source);
  data["outcome"] = outcome;
  return data;
}

}  // namespace

void write_report(const std::string &path, const ReportSource &source) {
  write_page(path, kReportPage, measured(source));
}

}  // namespace tool
