// SPDX-License-Identifier: Apache-2.0
// Images as float samples.
#pragma once

#include <memory>
#include <string>

#include "data/data.hpp"
#include "data/file.hpp"

namespace tool {

/// 8-bit RGB, rows from the top.
struct Image {
  size_t width = 0, height = 0;
  Bytes rgb;
};

/// Decodes JPEG or PNG, told apart by their first bytes.
Image decode_image(const std::string &path);

/// The JPEG and PNG files of a folder, sorted by name.
std::unique_ptr<Samples> open_images(const std::string &folder, const DataOptions &options, const qmodel *model);

}  // namespace tool
