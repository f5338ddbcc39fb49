// SPDX-License-Identifier: Apache-2.0
// A folder of its own for a test that needs files.
#pragma once

#include <filesystem>
#include <string>

namespace qtn::test {

/// Removed at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string file(const std::string &name) const;
  std::string path() const;
  /// Writes a file of that name; its path.
  std::string put(const std::string &name, const std::string &bytes) const;
  std::size_t count() const;

 private:
  std::filesystem::path path_;
};

}  // namespace qtn::test
