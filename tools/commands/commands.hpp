// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each function adds one to the command line; parsing then calls it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tool {

/// `words` are the command line, which a report repeats.
void add_quantize(CLI::App &app, std::vector<std::string> words);
void add_calibrate(CLI::App &app);
void add_merge(CLI::App &app);
void add_sensitivity(CLI::App &app);
void add_run(CLI::App &app);
void add_compare(CLI::App &app);
void add_bench(CLI::App &app);
void add_inspect(CLI::App &app);
/// `words` as for add_quantize.
void add_train(CLI::App &app, std::vector<std::string> words);

}  // namespace tool
