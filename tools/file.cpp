// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "handles.hpp"

namespace tool {

namespace {

[[noreturn]] void fail_with(const std::string &path, const char *what, int error) {
  throw Failure(path + ": " + what + ": " + std::strerror(error));
}

std::string folder_of(const std::string &path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

Bytes read_file(const std::string &path) {
  if (!std::filesystem::is_regular_file(path)) throw Failure(path + ": not a regular file");
  std::ifstream file(path, std::ios::binary);
  Bytes bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) fail_with(path, "cannot be read", errno);
  return bytes;
}

void require_writable(const std::string &path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    throw Failure(path + ": cannot be written: is a directory");
  if (::access(folder_of(path).c_str(), W_OK | X_OK) != 0) fail_with(path, "cannot be written", errno);
}

void write_file(const std::string &path, const std::string &content) {
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".tmp";
  std::ofstream file(temporary, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(temporary.c_str());
  fail_with(path, "cannot be written", error);
}

}  // namespace tool
