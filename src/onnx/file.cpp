// SPDX-License-Identifier: Apache-2.0
#include "onnx/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.hpp"

namespace qtn::onnx {
namespace {

[[noreturn]] void fail_io(const std::string &path, int error) { fail(QTN_EIO, path, ": ", std::strerror(error)); }

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  int get() const { return fd_; }

 private:
  int fd_;
};

/// A file that is removed again unless it got its final name.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string &path) : path_(path), name_(path), fd_(-1) {
    static std::atomic<unsigned> counter{0};
    int fd = -1;
    do {
      name_ = cat(path, ".", ::getpid(), "-", counter++, ".tmp");
      // Not mkstemp: the file shall have the permissions that the umask says.
      fd = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EEXIST);
    if (fd < 0) fail_io(path_, errno);
    fd_ = fd;
  }
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!renamed_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  void write(const std::string &bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_io(path_, errno);
      done += static_cast<std::size_t>(n);
    }
  }

  void publish() {
    const int fd = fd_;
    fd_ = -1;
    // Some file systems report a full disk only here.
    if (::close(fd) != 0) fail_io(path_, errno);
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail_io(path_, errno);
    renamed_ = true;
  }

 private:
  std::string path_, name_;
  int fd_;
  bool renamed_ = false;
};

}  // namespace

std::vector<char> read_file(const std::string &path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail_io(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_io(path, errno);
  if (S_ISDIR(status.st_mode)) fail_io(path, EISDIR);
  if (!S_ISREG(status.st_mode)) fail(QTN_EIO, path, ": not a regular file");
  std::vector<char> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_io(path, errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

void write_file(const std::string &path, const std::string &bytes) {
  TemporaryFile file(path);
  file.write(bytes);
  file.publish();
}

}  // namespace qtn::onnx
