// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tool {

using Bytes = std::vector<unsigned char>;

/// The bytes of a regular file. Failures name the path.
Bytes read_file(const std::string &path);

/// Fails early, before minutes of work, when a file cannot be made at `path`.
void require_writable(const std::string &path);

/// Whole or not at all: under a temporary name until all is written.
void write_file(const std::string &path, const std::string &content);

}  // namespace tool
