// SPDX-License-Identifier: Apache-2.0
// An input as edits of a file that the library wrote: so it reaches what only files of a model at hand reach.
#pragma once

#include "fuzzing.hpp"

namespace fuzz {

/// The input itself where its first byte is 0, else the file with the edits that it describes.
std::vector<std::uint8_t> edited(const std::vector<std::uint8_t> &file, const std::uint8_t *data, std::size_t size);

}  // namespace fuzz
