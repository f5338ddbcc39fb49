// SPDX-License-Identifier: Apache-2.0
// Arrays that lie in several files, one behind the other along the first axis.
#pragma once

#include <string>
#include <vector>

#include "data/array.hpp"

namespace tool {

class Shards {
 public:
  /// Throws where the rows of files have different shapes, or one is a scalar.
  explicit Shards(std::vector<Array> parts);

  size_t rows() const { return ends_.back(); }
  /// That of the first file.
  const Shape &shape() const { return parts_.front().shape; }
  const std::string &path() const { return parts_.front().path; }
  std::vector<std::string> paths() const;
  /// Rows [first, first + count), for an input of that type. Only they are read.
  Tensor read(size_t first, size_t count, qdtype wanted) const;

 private:
  std::vector<Array> parts_;
  std::vector<size_t> ends_;  ///< of each part, the number of rows up to its end
};

/// The file of this name; where there is none, and the name has * ? or [, the files that it matches, sorted by name.
/// Throws where a pattern matches no file.
std::vector<std::string> files_of(const std::string &pattern);

}  // namespace tool
