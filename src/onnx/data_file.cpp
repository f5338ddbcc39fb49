// SPDX-License-Identifier: Apache-2.0
#include "onnx/data_file.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/memory.hpp"
#include "onnx/messages.hpp"
#include "onnx/tensor_proto.hpp"

namespace qtn::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPage = 4096;

fs::file_type type_of(const std::string &path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::none) fail(QTN_EIO, path, ": ", error.message());
  return type;
}

/// The files of external data that a model names; none where it is no model.
std::set<std::string> named_by(const std::string &model) {
  std::set<std::string> names;
  try {
    const std::vector<char> bytes = read_file(model);
    const ModelProto proto = read_model({bytes.data(), bytes.size()});
    if (!proto.graph) return names;
    for (const protozero::data_view tensor : read_graph(*proto.graph).initializers)
      names.insert(external_location(tensor));
  } catch (const std::exception &) {
  }
  return names;
}

}  // namespace

std::uint64_t end_of(std::span<const DataRegion> regions) {
  return regions.empty() ? 0 : round_up(regions.back().offset + regions.back().tensor.nbytes(), kPage);
}

const std::string &DataFile::location() {
  if (location_.empty()) {
    while (type_of(path(number_)) != fs::file_type::not_found) ++number_;
    location_ = fs::path(path(number_)).filename().string();
  }
  return location_;
}

DataFile::~DataFile() {
  std::error_code error;
  if (is_written_) fs::remove(path(number_), error);
}

std::string DataFile::path(std::size_t number) const {
  return number == 0 ? model_ + ".data" : cat(model_, ".", number, ".data");
}

void DataFile::write(std::span<const DataRegion> regions) {
  if (const fs::file_type type = type_of(model_); type != fs::file_type::regular && type != fs::file_type::not_found)
    fail(QTN_EUNSUPPORTED, model_, ": no regular file, which a file of external data could lie beside");
  former_ = named_by(model_);
  OutputFile file(path(number_));
  std::uint64_t at = 0;
  const std::string zeros(kPage, '\0');
  for (const DataRegion &region : regions) {
    file.write(zeros.data(), region.offset - at);
    file.write(region.tensor.data(), region.tensor.nbytes());
    at = region.offset + region.tensor.nbytes();
  }
  file.commit();
  is_written_ = true;
}

void DataFile::keep() {
  is_written_ = false;
  const fs::path model(model_);
  std::error_code error;
  for (const std::string &name : former_)
    if (name.starts_with(model.filename().string() + ".") && name.ends_with(".data") &&
        name.find('/') == std::string::npos)
      fs::remove(model.parent_path() / name, error);
}

}  // namespace qtn::onnx
