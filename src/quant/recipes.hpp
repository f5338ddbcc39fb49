// SPDX-License-Identifier: Apache-2.0
// The configurations that have names.
#pragma once

#include <string>

#include "core/attrs.hpp"

namespace qtn::quant {

/// The settings of a recipe, by the keys of Config::set. Throws QTN_EUNSUPPORTED on another name, listing those there
/// are.
Attrs recipe(const std::string &name);

}  // namespace qtn::quant
