// SPDX-License-Identifier: Apache-2.0
#include "data/file.hpp"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/uninterrupted.hpp"
#include "base/whole_file.hpp"
#include "shared/handles.hpp"
#include "shared/interrupt.hpp"

namespace tool {

namespace {

[[noreturn]] void fail_with(const std::string &path, const char *what, int error) {
  throw Failure(path + ": " + what + ": " + std::strerror(error));
}

}  // namespace

// Not by a stream, whose failures do not say of what.
Bytes read_file(const std::string &path) {
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) ::close(fd);
    }
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
  } const file{qtn::uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })};
  struct stat status {};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) fail_with(path, "cannot be read", errno);
  if (!S_ISREG(status.st_mode)) throw Failure(path + ": not a regular file");
  Bytes bytes(static_cast<std::size_t>(status.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = qtn::uninterrupted([&] { return ::read(file.fd, bytes.data() + done, bytes.size() - done); });
    if (n < 0) fail_with(path, "cannot be read", errno);
    if (n == 0) throw Failure(path + ": ended " + std::to_string(bytes.size() - done) + " bytes early");
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

std::uintmax_t file_bytes(const std::string &path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return 0;
    fail_with(path, "cannot be read", errno);
  }
  return S_ISREG(status.st_mode) ? static_cast<std::uintmax_t>(status.st_size) : 0;
}

std::vector<std::string> matches_of(const std::string &pattern) {
  struct stat status {};
  if (::stat(pattern.c_str(), &status) == 0 || pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  struct Found {
    glob_t paths{};
    ~Found() { ::globfree(&paths); }
  } found;
  const int error = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found.paths);
  if (error == GLOB_NOSPACE) throw std::bad_alloc();
  std::vector<std::string> names;
  if (error == 0) names.assign(found.paths.gl_pathv, found.paths.gl_pathv + found.paths.gl_pathc);
  std::sort(names.begin(), names.end());  // by bytes, in whatever language the system speaks
  return names;
}

void require_writable(const std::string &path) {
  if (path == "-") throw UsageError("-: is not a file; for a file of this name write ./-");
  if (const int error = qtn::WholeFile::check(path)) fail_with(path, "cannot be written", error);
}

void write_file(const std::string &path, const std::string &content) {
  const Postponed signals;
  qtn::WholeFile file;
  int error = file.open(path);
  if (!error) error = file.write(content.data(), content.size());
  if (!error) error = file.commit();
  if (error) fail_with(path, "cannot be written", error);
}

}  // namespace tool
