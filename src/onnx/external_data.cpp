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
#include "base/uninterrupted.hpp"

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

// Read in any case, however little a file holds.
constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;

}  // namespace

ExternalFile::ExternalFile(const DataFolder &folder, const std::vector<std::pair<std::string, std::string>> &entries,
                           std::size_t nbytes, const std::string &what)
    : size_(nbytes), what_(what) {
  std::uint64_t length = nbytes;
  for (const auto &[key, value] : entries) {
    if (key == "location") location_ = value;
    if (key == "offset") offset_ = parse_number(value, "offset", what);
    if (key == "length") length = parse_number(value, "length", what);
  }
  if (folder.path.empty())
    fail(QTN_EUNSUPPORTED, what, ": its data is in the file \"", location_,
         "\", but the model was not loaded from a file");
  if (length != nbytes)
    fail(QTN_EFORMAT, what, ": needs ", nbytes, " bytes, but its external data \"", location_, "\" is said to be ",
         length);
  const std::string path = resolve(folder.path, location_, what);
  file_.fd = uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); });
  if (file_.fd < 0) fail(QTN_EIO, what, ": external data \"", location_, "\": ", std::strerror(errno));
  // What is asked is the file that was opened: the name may stand for another one by now.
  struct stat status {};
  if (fstat(file_.fd, &status) != 0) fail(QTN_EIO, what, ": external data \"", location_, "\": ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(QTN_EIO, what, ": external data \"", location_, "\" is not a regular file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (offset_ > size || size - offset_ < nbytes)
    fail(QTN_EIO, what, ": needs ", nbytes, " bytes at offset ", offset_, " of external data \"", location_,
         "\", which has ", size);
  // Tensors may share data, and file systems compress it, but not by that much.
  const std::uint64_t stored = std::uint64_t{512} * static_cast<std::uint64_t>(status.st_blocks);
  const std::uint64_t most = kFreeBytes + std::min(2 * size, 64 * stored);
  std::uint64_t &total = folder.bytes_read[{status.st_dev, status.st_ino}];
  if (__builtin_add_overflow(total, nbytes, &total) || total > most)
    fail(QTN_EFORMAT, what, ": tensors take ", total, " bytes of external data \"", location_, "\", which has ", stored,
         " on the disk");
}

ExternalFile::Descriptor::~Descriptor() {
  if (fd >= 0) close(fd);
}

void ExternalFile::read(void *to) const {
  auto *out = static_cast<char *>(to);
  for (std::size_t done = 0; done < size_;) {
    const ssize_t n =
        uninterrupted([&] { return pread(file_.fd, out + done, size_ - done, static_cast<off_t>(offset_ + done)); });
    if (n < 0) fail(QTN_EIO, what_, ": external data \"", location_, "\": ", std::strerror(errno));
    if (n == 0) fail(QTN_EIO, what_, ": external data \"", location_, "\" ended ", size_ - done, " bytes early");
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace qtn::onnx
