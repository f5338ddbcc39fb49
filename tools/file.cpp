// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/whole_file.hpp"
#include "handles.hpp"

namespace tool {

namespace {

[[noreturn]] void fail_with(const std::string &path, const char *what, int error) {
  throw Failure(path + ": " + what + ": " + std::strerror(error));
}

}  // namespace

Bytes read_file(const std::string &path) {
  if (!std::filesystem::is_regular_file(path)) throw Failure(path + ": not a regular file");
  std::ifstream file(path, std::ios::binary);
  Bytes bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) fail_with(path, "cannot be read", errno);
  return bytes;
}

std::uintmax_t file_bytes(const std::string &path) {
  return std::filesystem::is_regular_file(path) ? std::filesystem::file_size(path) : 0;
}

void require_writable(const std::string &path) {
  if (path == "-") throw UsageError("-: not a file; for one of this name write ./-");
  if (const int error = qtn::WholeFile::check(path)) fail_with(path, "cannot be written", error);
}

void refuse_input(const std::string &output, const std::vector<std::string> &inputs) {
  for (const std::string &named : inputs) {
    const std::string input = named.substr(named.find('=') + 1);  // --data NAME=FILE
    struct stat out {
    }, in{};
    if (::stat(output.c_str(), &out) != 0 || ::stat(input.c_str(), &in) != 0 || !S_ISREG(out.st_mode)) continue;
    if (out.st_dev == in.st_dev && out.st_ino == in.st_ino)
      throw UsageError(output + ": is what is read (" + input + "), and would be overwritten");
  }
}

void write_file(const std::string &path, const std::string &content) {
  qtn::WholeFile file;
  int error = file.open(path);
  if (!error) error = file.write(content.data(), content.size());
  if (!error) error = file.commit();
  if (error) fail_with(path, "cannot be written", error);
}

}  // namespace tool
