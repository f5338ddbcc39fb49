// SPDX-License-Identifier: Apache-2.0
#include "folder.hpp"

#include <cstdlib>
#include <fstream>

#include "check.hpp"

namespace qtn::test {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "qtensor-XXXXXX").string();
  if (!mkdtemp(pattern.data())) fail_test("no temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(const std::string &name) const { return (path_ / name).string(); }

std::string TemporaryFolder::path() const { return path_.string(); }

std::string TemporaryFolder::put(const std::string &name, const std::string &bytes) const {
  std::ofstream(file(name), std::ios::binary) << bytes;
  return file(name);
}

std::size_t TemporaryFolder::count() const {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
}

}  // namespace qtn::test
