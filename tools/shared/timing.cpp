// SPDX-License-Identifier: Apache-2.0
#include "shared/timing.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>

namespace tool {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The time of this thread: threads of OpenBLAS, which spin for a while after they start, do not count.
double cpu_milliseconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

}  // namespace

double percentile(const std::vector<double> &sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

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

}  // namespace tool
