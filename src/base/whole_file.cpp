// SPDX-License-Identifier: Apache-2.0
#include "base/whole_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "base/uninterrupted.hpp"

namespace qtn {
namespace {

std::string folder_of(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A name that ends so in the folder of `path`, and begins as its name, as far as names may be long.
std::string beside(const std::string &path, const std::string &end) {
  const std::size_t name = path.rfind('/') + 1;  // 0 without a slash
  return path.substr(0, name) + path.substr(name, NAME_MAX - end.size()) + end;
}

/// The folder over links, with a slash; "" where there is none.
std::string real_folder_of(const std::string &path) {
  char folder[PATH_MAX];
  return ::realpath(folder_of(path).c_str(), folder) ? std::string(folder) + "/" : "";
}

/// The number of an open file of this process that a path in /proc names, or -1.
int own_descriptor(const std::string &path, const std::string &folder) {
  const std::string name = path.substr(path.rfind('/') + 1);
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool own = folder == "/proc/" + std::to_string(::getpid()) + "/fd/";
  return own && error == std::errc() && end == name.data() + name.size() ? number : -1;
}

struct Place {
  std::string path;       ///< over links
  bool streams = false;   ///< no regular file
  bool is_there = false;  ///< with this mode
  mode_t mode = 0;
  int descriptor = -1;  ///< what is open already
};

int find(Place &place, const std::string &path) {
  place.path = path;
  for (int links = 0;; ++links) {
    struct stat status {};
    if (::lstat(place.path.c_str(), &status) != 0) return errno == ENOENT ? 0 : errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    if (!S_ISLNK(status.st_mode)) {
      place.is_there = true;
      place.mode = status.st_mode;
      place.streams = !S_ISREG(status.st_mode);
      return 0;
    }
    if (links == 40) return ELOOP;
    // Links of open files: what they lead to is not to be replaced, and may have no name.
    const std::string folder = real_folder_of(place.path);
    if (folder.starts_with("/proc/")) {
      place.streams = true;
      place.descriptor = own_descriptor(place.path, folder);
      return 0;
    }
    char to[PATH_MAX];
    const ssize_t length = ::readlink(place.path.c_str(), to, sizeof to);
    if (length < 0) return errno;
    const std::string target(to, static_cast<std::size_t>(length));
    place.path = target.starts_with("/") ? target : folder_of(place.path) + "/" + target;
  }
}

}  // namespace

WholeFile::~WholeFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

int WholeFile::check(const std::string &path) {
  Place place;
  if (const int error = find(place, path)) return error;
  const bool may = place.streams ? ::access(place.path.c_str(), W_OK) == 0
                                 : ::access(folder_of(place.path).c_str(), W_OK | X_OK) == 0;
  return may ? 0 : errno;
}

int WholeFile::open(const std::string &path) {
  Place place;
  if (const int error = find(place, path)) return error;
  if (place.descriptor >= 0) {  // opened again, a redirected file would be written from its beginning
    fd_ = ::fcntl(place.descriptor, F_DUPFD_CLOEXEC, 0);
    return fd_ < 0 ? errno : 0;
  }
  if (place.streams) {
    // A pipe without a reader is an error, not something to wait for.
    fd_ = uninterrupted([&] { return ::open(place.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); });
    if (fd_ < 0) return errno;
    const int flags = ::fcntl(fd_, F_GETFL);
    return flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK) < 0 ? errno : 0;
  }
  static std::atomic<unsigned> counter{0};
  std::string temporary;
  do {
    temporary = beside(place.path, "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp");
    // Not mkstemp: the file shall have the permissions that the umask says, or those of the one that it replaces.
    fd_ = uninterrupted(
        [&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666); });
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0) return errno;
  temporary_ = std::move(temporary);
  target_ = std::move(place.path);
  return place.is_there && ::fchmod(fd_, place.mode & 0777) != 0 ? errno : 0;
}

int WholeFile::write(const void *from, std::size_t count) {
  const auto *bytes = static_cast<const char *>(from);
  for (std::size_t done = 0; done < count;) {
    const ssize_t n = uninterrupted([&] { return ::write(fd_, bytes + done, count - done); });
    if (n < 0) return errno;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

int WholeFile::commit() {
  if (!temporary_.empty() && uninterrupted([&] { return ::fsync(fd_); }) != 0) return errno;
  // Some file systems report a full disk only here. A signal makes no difference: the descriptor is closed.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) return errno;
  if (temporary_.empty()) return 0;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return errno;
  temporary_.clear();
  // The name is on the disk with its folder. Where a folder cannot be synchronized, the file is there all the same.
  const int folder =
      uninterrupted([&] { return ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (folder >= 0) {
    uninterrupted([&] { return ::fsync(folder); });
    ::close(folder);
  }
  return 0;
}

}  // namespace qtn
