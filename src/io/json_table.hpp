// SPDX-License-Identifier: Apache-2.0
// The only JSON that is read here: {"row": {"field": 1, "other": "text", "list": [1, 2]}, ...}. Both the header of a
// safetensors file and what it says of our quantizers have this form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/attrs.hpp"

namespace qtn::io {

struct JsonRow {
  std::string name;
  Attrs fields;
};

/// Rows in their order. A list is of ints where all of its numbers are, else of floats. Throws QTN_EFORMAT for text
/// that is no JSON or of another form, for a name that comes twice, and for an integer over 63 bits; messages begin
/// with `where`.
std::vector<JsonRow> parse_json_table(std::string_view text, const std::string &where);

}  // namespace qtn::io
