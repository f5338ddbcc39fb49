// SPDX-License-Identifier: Apache-2.0
// Whole files in, whole files out.
#pragma once

#include <string>
#include <vector>

namespace qtn::onnx {

/// Throws QTN_EIO with the path and the system's reason, also for directories and other things that are not regular
/// files.
std::vector<char> read_file(const std::string &path);

/// All or nothing: writes a temporary file in the same folder and renames it. Throws QTN_EIO; `path` is then as it was.
void write_file(const std::string &path, const std::string &bytes);

}  // namespace qtn::onnx
