// SPDX-License-Identifier: Apache-2.0
#include "report/training_page.hpp"

#include "data/file.hpp"
#include "report/page.hpp"
#include "shared/model.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::optional<double> &value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

void write_training_report(const std::string &path, const TrainingReport &report, const Training &training) {
  Json data;
  data["version"] = library_version();
  data["date"] = date();
  const auto file = [](const std::string &name) { return Json{{"name", name}, {"bytes", file_bytes(name)}}; };
  data["files"] = {{"before", file(report.input)}, {"after", file(report.output)}};
  data["settings"] = Json::array();
  for (const auto &[name, value] : report.settings) data["settings"].push_back({{"name", name}, {"value", value}});
  data["judged"] = report.judged;
  data["epochs"] = Json::array();
  for (const Epoch &epoch : training.epochs()) data["epochs"].push_back(tool::json_of(epoch));
  data["best"] = {{"epoch", training.best().epoch}, {"top1", training.best().top1}};
  data["interrupted"] = training.interrupted();
  data["accuracies"] = {{"before", report.accuracies.before},
                        {"calibrated", json_of(report.accuracies.calibrated)},
                        {"after", report.accuracies.after}};
  data["command"] = command_line(report.command);
  write_page(path, kTrainingPage, data);
}

}  // namespace tool
