// SPDX-License-Identifier: Apache-2.0
// Files with some of their bytes changed, as a fuzzer changes them, but by a number alone.
#pragma once

#include <cstdint>
#include <vector>

namespace fuzz {

using Content = std::vector<std::uint8_t>;

/// One of the files, with one to sixteen changes. At least one file; the same number gives the same bytes.
Content changed(const std::vector<Content> &files, std::uint64_t number);

}  // namespace fuzz
