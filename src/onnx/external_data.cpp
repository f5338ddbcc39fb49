// SPDX-License-Identifier: Apache-2.0
#include "onnx/external_data.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.hpp"

namespace qtn::onnx {
namespace {

namespace fs = std::filesystem;

std::uint64_t parse_number(const std::string &text, const char *key, const std::string &what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail(QTN_EFORMAT, what, ": external data has ", key, " \"", text, "\", which is not a number");
  return value;
}

/// The real path of `location`, with every link resolved, which must still lie below `folder`.
std::string resolve(const std::string &folder, const std::string &location, const std::string &what) {
  const fs::path relative(location);
  const bool climbs = std::any_of(relative.begin(), relative.end(), [](const fs::path &part) { return part == ".."; });
  if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute() || climbs)
    fail(QTN_EFORMAT, what, ": external data \"", location, "\" must be a path inside the model's folder");
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  const fs::path file = error ? fs::path() : fs::canonical(root / relative, error);
  if (error) fail(QTN_EIO, what, ": external data \"", location, "\": ", error.message());
  if (std::mismatch(root.begin(), root.end(), file.begin(), file.end()).first != root.end())
    fail(QTN_EFORMAT, what, ": external data \"", location, "\" is a link that leads out of the model's folder");
  return file.string();
}

}  // namespace

ExternalFile::ExternalFile(const std::string &folder, const std::vector<std::pair<std::string, std::string>> &entries,
                           std::size_t nbytes, const std::string &what)
    : size_(nbytes), what_(what) {
  std::uint64_t length = nbytes;
  for (const auto &[key, value] : entries) {
    if (key == "location") location_ = value;
    if (key == "offset") offset_ = parse_number(value, "offset", what);
    if (key == "length") length = parse_number(value, "length", what);
  }
  if (folder.empty())
    fail(QTN_EUNSUPPORTED, what, ": its data is in the file \"", location_,
         "\", but the model was not loaded from a file");
  if (length != nbytes)
    fail(QTN_EFORMAT, what, ": needs ", nbytes, " bytes, but its external data \"", location_, "\" is said to be ",
         length);
  const std::string path = resolve(folder, location_, what);

  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    fail(QTN_EIO, what, ": external data \"", location_, "\": ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(QTN_EIO, what, ": external data \"", location_, "\" is not a regular file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (offset_ > size || size - offset_ < nbytes)
    fail(QTN_EIO, what, ": needs ", nbytes, " bytes at offset ", offset_, " of external data \"", location_,
         "\", which has ", size);
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd_ < 0) fail(QTN_EIO, what, ": external data \"", location_, "\": ", std::strerror(errno));
}

ExternalFile::~ExternalFile() {
  if (fd_ >= 0) close(fd_);
}

void ExternalFile::read(void *to) const {
  auto *out = static_cast<char *>(to);
  for (std::size_t done = 0; done < size_;) {
    const ssize_t n = pread(fd_, out + done, size_ - done, static_cast<off_t>(offset_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(QTN_EIO, what_, ": external data \"", location_, "\": ", std::strerror(errno));
    if (n == 0) fail(QTN_EIO, what_, ": external data \"", location_, "\" ended ", size_ - done, " bytes early");
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace qtn::onnx
