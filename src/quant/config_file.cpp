// SPDX-License-Identifier: Apache-2.0
#include "quant/config_file.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "io/config_json.hpp"

namespace qtn::quant {

void save_config(const Config &config, const std::string &path) {
  io::ConfigText text{config.name(), {}};
  for (const Rule &rule : config.rules()) text.rules.push_back({rule.selector.text(), rule.settings});
  write_file(path, io::config_json(text));
}

Config load_config(const std::string &path) {
  const std::vector<char> bytes = read_file(path);
  const io::ConfigText text = io::parse_config_json({bytes.data(), bytes.size()}, path);
  std::string place = path;
  try {
    Config config(text.recipe);
    for (std::size_t i = 0; i < text.rules.size(); ++i) {
      place = cat(path, ": rule ", i + 1);
      config.set(text.rules[i].selector, text.rules[i].settings ? &*text.rules[i].settings : nullptr);
    }
    return config;
  } catch (const Error &e) {
    fail(e.status(), place, ": ", e.what());
  }
}

}  // namespace qtn::quant
