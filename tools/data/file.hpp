// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tool {

using Bytes = std::vector<unsigned char>;

/// The bytes of a regular file. Failures name the path.
Bytes read_file(const std::string &path);

/// The size of a regular file, 0 for any other, or for none.
std::uintmax_t file_bytes(const std::string &path);

/// The path itself; where no file has that name, and it has * ? or [, the files that it matches, sorted by name: maybe
/// none.
std::vector<std::string> matches_of(const std::string &pattern);

/// Fails early, before minutes of work, when a file cannot be made at `path`, or where it is "-".
void require_writable(const std::string &path);

/// Whole or not at all: under a temporary name until all is written.
void write_file(const std::string &path, const std::string &content);

}  // namespace tool
