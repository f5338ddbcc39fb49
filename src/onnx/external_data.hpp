// SPDX-License-Identifier: Apache-2.0
// Tensor data kept in a file beside the model. A model from anywhere must not make the library read what lies
// elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace qtn::onnx {

/// Where a model's external data is, and how much of it has been read. Empty: nowhere.
struct DataFolder {
  DataFolder(std::string folder) : path(std::move(folder)) {}
  DataFolder(const char *folder) : path(folder) {}

  std::string path;
  mutable std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> bytes_read;  ///< by device and number
};

/// A region of a file below `folder`, found from the entries "location", "offset" and "length". The constructor throws
/// QTN_EFORMAT for a path or region that is not allowed (absolute, "..", a link that leads out, other than `nbytes`
/// long), for one file that stands for far more data than it holds, and QTN_EIO for a file that is missing or too
/// short; the messages begin with `what`.
class ExternalFile {
 public:
  ExternalFile(const DataFolder &folder, const std::vector<std::pair<std::string, std::string>> &entries,
               std::size_t nbytes, const std::string &what);
  ExternalFile(const ExternalFile &) = delete;
  ExternalFile &operator=(const ExternalFile &) = delete;

  /// Copies the whole region.
  void read(void *to) const;

 private:
  /// Closed also where the constructor throws.
  struct Descriptor {
    ~Descriptor();
    int fd = -1;
  };

  Descriptor file_;
  std::uint64_t offset_ = 0;
  std::size_t size_ = 0;
  std::string what_, location_;
};

}  // namespace qtn::onnx
