// SPDX-License-Identifier: Apache-2.0
// Configurations in files of JSON; docs/quantization.md has the form.
#pragma once

#include <string>

#include "quant/config.hpp"

namespace qtn::quant {

/// Throws QTN_EIO.
void save_config(const Config &config, const std::string &path);

/// Throws QTN_EIO; QTN_EFORMAT on text of another form; what Config and Config::set throw. Messages name the file.
Config load_config(const std::string &path);

}  // namespace qtn::quant
