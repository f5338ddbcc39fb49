// SPDX-License-Identifier: Apache-2.0
// Pages of --report: one file each, with its data, style and script.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tool {

/// Pages of tools/report with style and script; REPORT_DATA stands where the data goes.
extern const char *const kReportPage;
extern const char *const kTrainingPage;

void write_page(const std::string &path, const char *page, const nlohmann::ordered_json &data);

/// What to type into a shell to run the command with these words.
std::string command_line(const std::vector<std::string> &words);

/// Now, for a reader.
std::string date();

}  // namespace tool
