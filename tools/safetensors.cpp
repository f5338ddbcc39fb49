// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes of header length, a JSON header that names the tensors, then their elements.
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "array.hpp"

namespace tool {

namespace {

struct NamedType {
  std::string_view name;
  qdtype dtype;
};

constexpr std::array<NamedType, 11> kTypes = {{{"F32", QTN_FLOAT32},
                                               {"F64", QTN_FLOAT64},
                                               {"F16", QTN_FLOAT16},
                                               {"BF16", QTN_BFLOAT16},
                                               {"I64", QTN_INT64},
                                               {"I32", QTN_INT32},
                                               {"I16", QTN_INT16},
                                               {"I8", QTN_INT8},
                                               {"U16", QTN_UINT16},
                                               {"U8", QTN_UINT8},
                                               {"BOOL", QTN_BOOL}}};

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the format

qdtype type_named(const std::string &path, const std::string &name) {
  for (const NamedType &known : kTypes)
    if (known.name == name) return known.dtype;
  throw Failure(path + ": element type '" + name + "' is not known");
}

std::string_view name_of(const std::string &path, qdtype dtype) {
  for (const NamedType &known : kTypes)
    if (known.dtype == dtype) return known.name;
  throw Failure(path + ": a .safetensors file cannot hold " + qdtype_name(dtype));
}

Array array_of(const std::shared_ptr<const InputFile> &file, uint64_t data_start, const std::string &name,
               const nlohmann::json &entry) {
  Array array;
  array.file = file;
  array.stored = type_named(file->path(), entry.at("dtype").get<std::string>());
  for (const auto &extent : entry.at("shape")) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX)
      throw Failure(file->path() + ": tensor '" + name + "' has a broken shape");
    array.shape.push_back(extent.get<int64_t>());
  }
  const auto &offsets = entry.at("data_offsets");
  if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    throw Failure(file->path() + ": tensor '" + name + "' has broken data_offsets");
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > file->size() - data_start)
    throw Failure(file->path() + ": tensor '" + name + "' lies outside the file");
  array.offset = data_start + begin;
  array.validate();
  const size_t elements = array.shape.empty() ? 1 : array.rows() * array.row_elements();
  if (elements * element_bytes(array.stored) != end - begin)
    throw Failure(file->path() + ": tensor '" + name + "' has shape " + shape_text(array.shape) + " but " +
                  std::to_string(end - begin) + " bytes");
  return array;
}

}  // namespace

NamedArrays open_safetensors(const std::string &path) {
  const auto file = std::make_shared<const InputFile>(path);
  std::array<unsigned char, 8> start{};
  if (file->size() < start.size()) throw Failure(path + ": is not a .safetensors file");
  file->read(start.data(), 0, start.size());
  uint64_t length = 0;
  for (size_t i = 0; i < start.size(); ++i) length |= static_cast<uint64_t>(start[i]) << 8 * i;
  if (length > kMaxHeader || length > file->size() - start.size()) throw Failure(path + ": is not a .safetensors file");
  std::string header(static_cast<size_t>(length), '\0');
  file->read(header.data(), start.size(), header.size());
  NamedArrays arrays;
  try {
    const auto json = nlohmann::json::parse(header);
    if (!json.is_object()) throw Failure(path + ": has a broken .safetensors header");
    for (const auto &[name, entry] : json.items())
      if (name != "__metadata__") arrays.emplace_back(name, array_of(file, start.size() + length, name, entry));
  } catch (const nlohmann::json::exception &) {
    throw Failure(path + ": has a broken .safetensors header");
  }
  return arrays;
}

void write_safetensors(const std::string &path, const std::vector<Result> &results) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  uint64_t offset = 0;
  for (const Result &result : results) {
    json[result.name] = {{"dtype", name_of(path, result.dtype)},
                         {"shape", result.shape},
                         {"data_offsets", {offset, offset + result.data.size()}}};
    offset += result.data.size();
  }
  std::string header = json.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');  // keeps the elements aligned for those who map the file
  std::array<char, 8> start{};
  for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<char>(header.size() >> 8 * i & 0xff);
  OutputFile file(path);
  file.write(start.data(), start.size());
  file.write(header);
  for (const Result &result : results) file.write(result.data.data(), result.data.size());
  file.commit();
}

}  // namespace tool
