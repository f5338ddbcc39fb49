// SPDX-License-Identifier: Apache-2.0
// A configuration as JSON: {"recipe": "onnx", "rules": [{"selector": "op:Conv", "settings": {"bins": 512}}]}, where
// settings null leave in float. What the names mean is not known here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attrs.hpp"

namespace qtn::io {

struct ConfigRule {
  std::string selector;
  std::optional<Attrs> settings;  ///< ints, floats and strings; nullopt: null
};

struct ConfigText {
  std::string recipe;
  std::vector<ConfigRule> rules;  ///< in their order
};

/// One line for each rule.
std::string config_json(const ConfigText &config);

/// true and false are 1 and 0; "rules" may be absent. Throws QTN_EFORMAT for text that is no JSON or of another form
/// (the message lists the valid members), and for a member that comes twice; messages begin with `where`.
ConfigText parse_config_json(std::string_view text, const std::string &where);

}  // namespace qtn::io
