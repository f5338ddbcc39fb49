// SPDX-License-Identifier: Apache-2.0
#include "shared/summary.hpp"

#include "shared/model.hpp"
#include "shared/timing.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMeasuredSeconds = 0.2;

double milliseconds(const qmodel *model, const std::vector<Tensor> &inputs) {
  const Session session = open_session(model, "", 0);
  return percentile(measure(model, session.get(), inputs, kMeasuredSeconds).wall, 0.5);
}

}  // namespace

Json with_speed(Json report, const qmodel *real, const qmodel *quantized, const CalibrationData &data) {
  const std::vector<Tensor> inputs = data.read(0);
  const double real_ms = milliseconds(real, inputs), int8_ms = milliseconds(quantized, inputs);
  report["speed"] = {{"batch", data.samples() / data.batches()}, {"float_ms", real_ms}, {"int8_ms", int8_ms}};
  return report;
}

Json summarize(const Json &report) {
  Json summary;
  for (const char *member : {"accuracy", "trials", "nodes", "speed", "warnings", "next"})
    summary[member] = report.at(member);
  return summary;
}

void print_summary(std::FILE *talk, Json report) {
  const Json warnings = report.at("warnings");
  report.erase("warnings");
  std::fprintf(talk, "%s", text_of(make<Blob>(qreport_summary, report.dump().c_str()).get()).c_str());
  std::fflush(talk);
  for (const Json &warning : warnings)
    std::fprintf(stderr, "qtensor: warning: %s\n", warning.get<std::string>().c_str());
}

}  // namespace tool
