// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "commands/commands.hpp"
#include "shared/checks.hpp"
#include "shared/json.hpp"
#include "shared/model.hpp"
#include "shared/timing.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  std::string model;
  std::vector<std::string> shapes;
  int64_t threads = 0, batch = 0;  // batch 0: 1, where no shape says otherwise
  double seconds = 2;
  bool profile = false, json = false;
};

using Shapes = std::map<std::string, Shape>;

// NAME=1x128
Shapes given_shapes(const qmodel *model, const std::vector<std::string> &texts) {
  Shapes shapes;
  for (const std::string &text : texts) {
    const size_t equals = text.rfind('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos) throw UsageError("--shape " + text + ": NAME=1x128 is expected");
    Shape shape;
    std::istringstream numbers(text.substr(equals + 1));
    for (std::string number; std::getline(numbers, number, 'x');) {
      const bool digits = !number.empty() && number.size() < 10 &&
                          std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) throw UsageError("--shape " + text + ": '" + number + "' is not a size");
      shape.push_back(std::stoll(number));
    }
    size_t index = 0;
    while (index < qmodel_input_count(model) && name != qmodel_input_name(model, index)) ++index;
    if (index == qmodel_input_count(model)) throw Failure("--shape " + text + ": the model has no such input");
    if (!shapes.emplace(name, std::move(shape)).second)
      throw UsageError("--shape " + text + ": that input has a shape already");
  }
  return shapes;
}

Shape input_shape(const qmodel *model, size_t index, int64_t batch, const Shapes &given) {
  const std::string name = qmodel_input_name(model, index);
  if (const auto at = given.find(name); at != given.end()) {
    const Shape &shape = at->second;
    if (index == 0 && batch > 0 && (shape.empty() || shape[0] != batch))
      throw UsageError("--batch " + std::to_string(batch) + ": the input '" + name + "' gets another one by --shape, " +
                       shape_text(shape));
    return shape;
  }
  const int64_t *declared = qmodel_input_shape(model, index);
  if (declared == nullptr)
    throw Failure("input '" + name + "' has no declared shape, so no data can be invented for it; --shape " + name +
                  "=1x128, for example, gives it one");
  Shape shape(declared, declared + qmodel_input_rank(model, index));
  if (!shape.empty() && shape[0] < 0) shape[0] = std::max<int64_t>(batch, 1);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] < 0)
      throw Failure("input '" + name + "' leaves dimension " + std::to_string(i) +
                    " open; only the first, the batch, is filled in; --shape " + name +
                    "=1x128, for example, gives them all");
  if (index == 0 && batch > 0 && (shape.empty() || shape[0] != batch))
    throw Failure("input '" + name + "' has the fixed shape " + shape_text(shape) + ", not a batch of " +
                  std::to_string(batch));
  return shape;
}

// The same numbers in every run of the command.
Tensor random_input(const qmodel *model, size_t index, const Shape &shape, std::mt19937 &random) {
  const qdtype dtype = qmodel_input_dtype(model, index);
  Tensor tensor = make<Tensor>(qtensor_create, dtype, shape.data(), shape.size(), nullptr, nullptr, size_t{0});
  void *data = nullptr;
  check(qtensor_data_mut(&data, tensor.get()));
  const size_t bytes = qtensor_nbytes(tensor.get());
  if (dtype == QTN_FLOAT32) {
    std::uniform_real_distribution<float> values(-1, 1);
    std::generate_n(static_cast<float *>(data), bytes / sizeof(float), [&] { return values(random); });
  } else if (dtype == QTN_UINT8 || dtype == QTN_INT8) {
    std::generate_n(static_cast<unsigned char *>(data), bytes, [&] { return static_cast<unsigned char>(random()); });
  }
  return tensor;  // other types are indices and switches, for which 0 is always valid
}

void print_text(const Json &report) {
  std::printf("median %.3f ms, p10 %.3f, p90 %.3f; batch %lld, threads %lld, isa %s, engine %s\n",
              report["median_ms"].get<double>(), report["p10_ms"].get<double>(), report["p90_ms"].get<double>(),
              report["batch"].get<long long>(), report["threads"].get<long long>(),
              report["isa"].get<std::string>().c_str(), report["engine"].get<std::string>().c_str());
  if (!report.contains("nodes")) return;
  std::printf("weights %.2f MB, plan %.2f MB\n", report["weights_bytes"].get<double>() * 1e-6,
              report["plan_bytes"].get<double>() * 1e-6);
  std::printf("\n%9s %9s %9s %9s  %-18s %-8s %-20s %s\n", "ms", "MMAC", "GMAC/s", "kB", "op", "dtype", "kernel",
              "node");
  for (const Json &node : report["nodes"])
    std::printf("%9.3f %9.2f %9.1f %9.1f  %-18s %-8s %-20s %s\n", node["ms"].get<double>(),
                node["macs"].get<double>() * 1e-6, node["gmac_per_s"].get<double>(), node["bytes"].get<double>() * 1e-3,
                node["op"].get<std::string>().c_str(), node["dtype"].get<std::string>().c_str(),
                node["kernel"].get<std::string>().c_str(), node["name"].get<std::string>().c_str());
}

void bench(const BenchOptions &options) {
  const Model model = load_model(options.model);
  const Session session = open_session(model.get(), "", options.threads);
  const Shapes given = given_shapes(model.get(), options.shapes);
  std::mt19937 random(1);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < qmodel_input_count(model.get()); ++i)
    inputs.push_back(random_input(model.get(), i, input_shape(model.get(), i, options.batch, given), random));
  const Times times = measure(model.get(), session.get(), inputs, options.seconds);
  const Json profiled = profile(session.get(), inputs, options.profile ? 9 : 1);
  const Shape shape = inputs.empty() ? Shape() : shape_of(inputs.front().get());
  Json report;
  report["median_ms"] = percentile(times.wall, 0.5);
  report["p10_ms"] = percentile(times.wall, 0.1);
  report["p90_ms"] = percentile(times.wall, 0.9);
  report["batch"] = shape.empty() ? 1 : shape[0];
  report["threads"] = profiled.at("threads");
  report["isa"] = profiled.at("isa");
  report["engine"] = profiled.at("engine");
  report["cpu_ms"] = percentile(times.cpu, 0.5);
  report["weights_bytes"] = profiled.at("weights_bytes");
  report["plan_bytes"] = profiled.at("plan_bytes");
  if (options.profile) {
    report["nodes"] = Json::array();
    for (const Json &node : profiled.at("nodes")) {
      Json &shown = report["nodes"].emplace_back();
      for (const char *key : {"name", "op", "kernel", "ms", "dtype", "macs", "bytes", "gmac_per_s"})
        shown[key] = node.at(key);
    }
  }
  if (options.json)
    print_json(stdout, report);
  else
    print_text(report);
}

}  // namespace

void add_bench(CLI::App &app) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App &command = *app.add_subcommand("bench", "Measure the time of a run on invented data");
  command.add_option("MODEL.onnx", options->model, "Float or int8 model")->required();
  command.add_option("--threads", options->threads, "Threads (default: as many as there are processors)")
      ->type_name("N")
      ->check(thread_count());
  command.add_option("--batch", options->batch, "Samples in a run (default 1)")
      ->type_name("N")
      ->check(positive_count());
  command
      .add_option("--shape", options->shapes, "The shape of an input, for those that leave dimensions open (repeated)")
      ->type_name("NAME=1x128");
  command.add_option("--seconds", options->seconds, "How many seconds to measure (default 2)")
      ->type_name("S")
      ->check(positive_seconds());
  command.add_flag("--profile", options->profile, "Also show time, products and bytes of each node");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.callback([options] { bench(*options); });
}

}  // namespace tool
