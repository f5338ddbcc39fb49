// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "checks.hpp"
#include "commands.hpp"
#include "model.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string model;
  int64_t threads = 0, batch = 1;
  double seconds = 2;
  bool profile = false, json = false;
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Shape input_shape(const qmodel *model, size_t index, int64_t batch) {
  const std::string name = qmodel_input_name(model, index);
  const int64_t *declared = qmodel_input_shape(model, index);
  if (declared == nullptr) throw Failure("input '" + name + "' has no declared shape, so it cannot be made up");
  Shape shape(declared, declared + qmodel_input_rank(model, index));
  if (!shape.empty() && shape[0] < 0) shape[0] = batch;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] < 0)
      throw Failure("input '" + name + "' leaves dimension " + std::to_string(i) +
                    " open; only the first, the batch, " + "is filled in");
  if (index == 0 && batch != 1 && (shape.empty() || shape[0] != batch))
    throw Failure("input '" + name + "' has the fixed shape " + shape_text(shape) + ", not a batch of " +
                  std::to_string(batch));
  return shape;
}

// The same numbers in every run of the command.
Tensor random_input(const qmodel *model, size_t index, int64_t batch, std::mt19937 &random) {
  const Shape shape = input_shape(model, index, batch);
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

// Of this thread: threads of OpenBLAS, which spin for a while after they start, do not count.
double cpu_milliseconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

double percentile(const std::vector<double> &sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

// Of every run, in milliseconds and sorted.
struct Times {
  std::vector<double> wall, cpu;
};

Times measure(const qmodel *model, const qsession *session, const std::vector<Tensor> &inputs, double seconds) {
  const std::vector<const qtensor *> pointers = borrow(inputs);
  std::vector<qtensor *> outputs(qmodel_output_count(model));
  const auto run_for = [&](double limit_ms, size_t least) {
    Times times;
    const Clock::time_point begin = Clock::now();
    while (times.wall.size() < least || milliseconds_since(begin) < limit_ms) {
      const double cpu_start = cpu_milliseconds();
      const Clock::time_point start = Clock::now();
      const qstatus status = qsession_run(outputs.data(), outputs.size(), session, pointers.data(), pointers.size());
      times.wall.push_back(milliseconds_since(start));
      times.cpu.push_back(cpu_milliseconds() - cpu_start);
      check(status);
      for (qtensor *output : outputs) qtensor_free(output);
    }
    return times;
  };
  run_for(seconds * 100, 2);  // warm-up, a tenth of the time
  Times times = run_for(seconds * 1000, 3);
  for (std::vector<double> *list : {&times.wall, &times.cpu}) std::sort(list->begin(), list->end());
  return times;
}

// Several profiles, with the median time of each node.
Json profile(const qsession *session, const std::vector<Tensor> &inputs, size_t runs) {
  const std::vector<const qtensor *> pointers = borrow(inputs);
  Json first;
  std::vector<std::vector<double>> times;
  for (size_t run = 0; run < runs; ++run) {
    const Blob blob = make<Blob>(qsession_profile, session, pointers.data(), pointers.size());
    const Json json = Json::parse(text_of(blob.get()));
    if (run == 0) first = json;
    const Json &nodes = json.at("nodes");
    times.resize(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) times[i].push_back(nodes[i].at("ms").get<double>());
  }
  for (size_t i = 0; i < times.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    Json &node = first["nodes"][i];
    const double ms = percentile(times[i], 0.5);
    node["ms"] = ms;
    node["gmac_per_s"] = ms > 0 ? node["macs"].get<double>() / ms * 1e-6 : 0.0;
  }
  return first;
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

void bench(const Options &options) {
  const Model model = load_model(options.model);
  const Session session = open_session(model.get(), "", options.threads);
  std::mt19937 random(1);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < qmodel_input_count(model.get()); ++i)
    inputs.push_back(random_input(model.get(), i, options.batch, random));
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
    std::printf("%s\n", report.dump().c_str());
  else
    print_text(report);
}

}  // namespace

void add_bench(CLI::App &app) {
  const auto options = std::make_shared<Options>();
  CLI::App &command = *app.add_subcommand("bench", "Measure the time of a run on made-up data");
  command.add_option("MODEL.onnx", options->model, "Float or int8 model")->required();
  command.add_option("--threads", options->threads, "Threads (default: as many as there are processors)")
      ->type_name("N")
      ->check(positive_count());
  command.add_option("--batch", options->batch, "Samples a run (default 1)")->type_name("N")->check(positive_count());
  command.add_option("--seconds", options->seconds, "How long to measure (default 2)")
      ->type_name("S")
      ->check(positive_seconds());
  command.add_flag("--profile", options->profile, "Also time, products and bytes of each node");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.callback([options] { bench(*options); });
}

}  // namespace tool
