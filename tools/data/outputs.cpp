// SPDX-License-Identifier: Apache-2.0
#include "data/outputs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "data/file.hpp"
#include "shared/handles.hpp"

namespace tool {

namespace {

namespace fs = std::filesystem;

// What a path leads to: a file that is there, or a name in a folder.
struct Place {
  dev_t device;
  ino_t inode;
  std::string name;  // in the folder; "" for a file that is there
  mode_t mode;       // of that file; 0 where there is none

  bool operator==(const Place &other) const {
    return device == other.device && inode == other.inode && name == other.name;
  }
};

std::optional<Place> place_of(fs::path path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return Place{status.st_dev, status.st_ino, "", status.st_mode};
  std::error_code error;
  constexpr int kMaxLinks = 40;  // as the system has it
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i)
    path = path.parent_path() / fs::read_symlink(path, error);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (::stat(folder.c_str(), &status) != 0) return std::nullopt;
  return Place{status.st_dev, status.st_ino, path.filename().string(), 0};
}

// The files beside a model in which its tensors lie. Wherever a tensor is in the model, an entry {"location", path}
// names its file, and writers of protobuf give it the same bytes.
std::vector<std::string> external_files(const std::string &model) {
  std::vector<std::string> found;
  if (model.empty() || file_bytes(model) == 0) return found;
  constexpr std::string_view kKey = "\x0a\x08location\x12";
  const Bytes bytes = read_file(model);
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  for (size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at + 1)) {
    size_t length = 0, begin = at + kKey.size();
    for (int shift = 0; begin < text.size() && shift < 28; shift += 7) {  // a varint
      const auto byte = static_cast<unsigned char>(text[begin++]);
      length |= static_cast<size_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (begin <= text.size())
      found.push_back((fs::path(model).parent_path() / std::string(text.substr(begin, length))).string());
  }
  std::sort(found.begin(), found.end());  // many tensors lie in one file
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

void check_outputs(const std::vector<std::string> &outputs, const std::vector<std::string> &inputs,
                   const std::string &model) {
  std::vector<std::pair<std::string, Place>> written;
  bool replaces = false;
  for (const std::string &output : outputs) {
    if (output.empty()) continue;
    require_writable(output);
    const std::optional<Place> place = place_of(output);
    if (!place) continue;
    // A device such as /dev/null may be named twice; others would hold a mixture.
    for (const auto &[other, its] : written)
      if (its == *place && !S_ISCHR(place->mode))
        throw UsageError(output + ": is named for two outputs" + (other == output ? "" : ", also as " + other));
    replaces = replaces || S_ISREG(place->mode);
    written.emplace_back(output, *place);
  }
  if (!replaces) return;
  std::vector<std::string> read = external_files(model);
  read.push_back(model);
  read.insert(read.end(), inputs.begin(), inputs.end());
  for (const std::string &input : read) {
    const std::optional<Place> place = input.empty() ? std::nullopt : place_of(input);
    for (const auto &[output, its] : written)
      if (place && S_ISREG(its.mode) && its == *place)
        throw UsageError(output + ": is also read (" + input + "), and would be overwritten");
  }
}

std::FILE *talk_beside(const std::vector<std::string> &outputs) {
  struct stat standard {};
  if (::fstat(STDOUT_FILENO, &standard) != 0 || S_ISCHR(standard.st_mode)) return stdout;
  for (const std::string &output : outputs) {
    struct stat status {};
    if (::stat(output.c_str(), &status) == 0 && status.st_dev == standard.st_dev && status.st_ino == standard.st_ino)
      return stderr;
  }
  return stdout;
}

}  // namespace tool
