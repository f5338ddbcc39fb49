// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

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

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer before fstat can refuse it.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_with(path_, "cannot be opened", errno);
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    throw Failure(path_ + ": not a regular file");
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(void *out, uint64_t offset, size_t count) const {
  auto *to = static_cast<unsigned char *>(out);
  while (count > 0) {
    const ssize_t got = ::pread(descriptor_, to, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_with(path_, "cannot be read", errno);
    if (got == 0) throw Failure(path_ + ": ends after " + std::to_string(offset) + " bytes, in the middle of its data");
    to += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
}

Bytes InputFile::read_all() const {
  Bytes bytes(size_);
  read(bytes.data(), 0, bytes.size());
  return bytes;
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  require_writable(path_);
  temporary_ = path_ + ".tmp-XXXXXX";
  descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail("cannot be made");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor_, 0666 & ~mask);  // mkostemp makes files that only their owner reads
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void OutputFile::fail(const char *what) const { fail_with(path_, what, errno); }

void OutputFile::write(const void *data, size_t count) {
  const auto *from = static_cast<const unsigned char *>(data);
  while (count > 0) {
    const ssize_t written = ::write(descriptor_, from, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    from += written;
    count -= static_cast<size_t>(written);
  }
}

void OutputFile::commit() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("cannot be written");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be replaced");
  ::close(descriptor_);
  descriptor_ = -1;
}

void require_writable(const std::string &path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    throw Failure(path + ": cannot be written: is a directory");
  if (::access(folder_of(path).c_str(), W_OK | X_OK) != 0) fail_with(path, "cannot be written", errno);
}

}  // namespace tool
