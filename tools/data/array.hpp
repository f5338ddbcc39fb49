// SPDX-License-Identifier: Apache-2.0
// Arrays in files (.npy, .safetensors), read by rows of the first axis so that data larger than memory can stream.
#pragma once

#include <qtensor/qtensor.h>

#include <string>
#include <vector>

#include "shared/handles.hpp"

namespace tool {

using Shape = std::vector<int64_t>;

struct Array {
  std::string path, name;
  Shape shape;

  size_t rows() const { return shape.empty() ? 0 : static_cast<size_t>(shape[0]); }
  /// Rows [first, first + count).
  Tensor read(size_t first, size_t count) const;
};

/// For an input of that type: floats of any width become those that it takes, float32 where it takes none.
Tensor of_input(Tensor rows, qdtype wanted);

std::vector<Array> open_arrays(const std::string &path);
/// The array of a file that holds one.
Array open_array(const std::string &path);

/// Class numbers: int64 (or a narrower integer) of shape [count] or [count, 1], of a file or of those that a pattern matches.
/// Throws where they are not one for each of `samples`.
std::vector<int64_t> read_labels(const std::string &path, size_t samples);

/// "1x3x224x224", as in the messages of the library; "?" for an open dimension.
std::string shape_text(const Shape &shape);

}  // namespace tool
