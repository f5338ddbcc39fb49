// SPDX-License-Identifier: Apache-2.0
// A quantizer as members of a JSON object. What write_members writes, read_members gives back exactly.
#pragma once

#include "base/json_writer.hpp"
#include "core/attrs.hpp"
#include "core/quantizer.hpp"

namespace qtn::io {

void write_members(JsonWriter &json, const Quantizer &quantizer);

/// Throws where a member is missing, unknown or of another kind, and what Quantizer throws.
QuantizerPtr read_members(const Attrs &members, qdtype dtype);

}  // namespace qtn::io
