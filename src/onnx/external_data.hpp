// SPDX-License-Identifier: Apache-2.0
// Tensor data kept in a file beside the model. A model from anywhere must not make the library read what lies
// elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace qtn::onnx {

/// A region of a file below `folder`, found from the entries "location", "offset" and "length". The constructor throws
/// QTN_EFORMAT for a path or region that is not allowed (absolute, "..", a link that leads out, other than `nbytes`
/// long) and QTN_EIO for a file that is missing or too short; the messages begin with `what`.
class ExternalFile {
 public:
  ExternalFile(const std::string &folder, const std::vector<std::pair<std::string, std::string>> &entries,
               std::size_t nbytes, const std::string &what);
  ~ExternalFile();
  ExternalFile(const ExternalFile &) = delete;
  ExternalFile &operator=(const ExternalFile &) = delete;

  /// Copies the whole region.
  void read(void *to) const;

 private:
  int fd_ = -1;
  std::uint64_t offset_ = 0;
  std::size_t size_ = 0;
  std::string what_, location_;
};

}  // namespace qtn::onnx
