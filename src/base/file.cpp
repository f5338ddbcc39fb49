// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/uninterrupted.hpp"

namespace qtn {
namespace {

[[noreturn]] void fail_io(const std::string &path, int error) { fail(QTN_EIO, path, ": ", std::strerror(error)); }

/// A constructor that throws runs no destructor of its class.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)), fd_(-1) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  Descriptor file(uninterrupted([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (file.get() < 0) fail_io(path_, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_io(path_, errno);
  if (S_ISDIR(status.st_mode)) fail_io(path_, EISDIR);
  if (!S_ISREG(status.st_mode)) fail(QTN_EIO, path_, ": not a regular file");
  size_ = static_cast<std::uint64_t>(status.st_size);
  fd_ = file.release();
}

InputFile::InputFile(std::string name, std::span<const std::byte> bytes)
    : path_(std::move(name)), fd_(-1), size_(bytes.size()), bytes_(bytes.data()) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(InputFile &&other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_), bytes_(other.bytes_) {}

void InputFile::read(void *to, std::uint64_t offset, std::size_t count) const {
  if (bytes_) {
    const std::uint64_t left = size_ - std::min(offset, size_);
    if (count > left) fail(QTN_EIO, path_, ": ended ", count - left, " bytes early");
    if (count > 0) std::memcpy(to, bytes_ + offset, count);
    return;
  }
  auto *out = static_cast<char *>(to);
  for (std::size_t done = 0; done < count;) {
    const ssize_t n =
        uninterrupted([&] { return ::pread(fd_, out + done, count - done, static_cast<off_t>(offset + done)); });
    if (n < 0) fail_io(path_, errno);
    if (n == 0) fail(QTN_EIO, path_, ": ended ", count - done, " bytes early");
    done += static_cast<std::size_t>(n);
  }
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) { check(file_.open(path_)); }

void OutputFile::write(const void *from, std::size_t count) { check(file_.write(from, count)); }

void OutputFile::commit() { check(file_.commit()); }

void OutputFile::check(int error) const {
  if (error) fail_io(path_, error);
}

std::vector<char> read_file(const std::string &path) {
  const InputFile file(path);
  std::vector<char> bytes(static_cast<std::size_t>(file.size()));
  file.read(bytes.data(), 0, bytes.size());
  return bytes;
}

void write_file(const std::string &path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace qtn
