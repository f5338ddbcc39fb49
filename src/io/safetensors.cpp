// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/json_writer.hpp"
#include "base/memory.hpp"
#include "base/stable_order.hpp"
#include "base/utf8.hpp"
#include "io/checked.hpp"
#include "io/json_table.hpp"
#include "io/quantizer_members.hpp"

namespace qtn::io {
namespace {

struct TypeName {
  const char *name;
  qdtype dtype;
};

// For 4- and 2-bit types the format has I8 or U8, see stored_dtype().
constexpr std::array<TypeName, 18> kTypes = {{{"F64", QTN_FLOAT64},
                                              {"F32", QTN_FLOAT32},
                                              {"F16", QTN_FLOAT16},
                                              {"BF16", QTN_BFLOAT16},
                                              {"F8_E4M3", QTN_FLOAT8E4M3FN},
                                              {"F8_E5M2", QTN_FLOAT8E5M2},
                                              {"F8_E4M3FNUZ", QTN_FLOAT8E4M3FNUZ},
                                              {"F8_E5M2FNUZ", QTN_FLOAT8E5M2FNUZ},
                                              {"F8_E8M0", QTN_FLOAT8E8M0},
                                              {"I64", QTN_INT64},
                                              {"I32", QTN_INT32},
                                              {"U64", QTN_UINT64},
                                              {"U32", QTN_UINT32},
                                              {"I16", QTN_INT16},
                                              {"U16", QTN_UINT16},
                                              {"I8", QTN_INT8},
                                              {"U8", QTN_UINT8},
                                              {"BOOL", QTN_BOOL}}};

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the limit of the format
constexpr std::size_t kHeaderAlignment = 8;        // elements begin at a multiple
constexpr const char *kMetadata = "__metadata__";
constexpr const char *kOurs = "qtensor";

constexpr AttrSpec kEntry[] = {
    {"dtype", AttrSpec::kString}, {"shape", AttrSpec::kInts}, {"data_offsets", AttrSpec::kInts}};

std::string type_name(qdtype dtype) {
  for (const TypeName &type : kTypes)
    if (type.dtype == stored_dtype(dtype)) return type.name;
  fail(QTN_EUNSUPPORTED, "a safetensors file cannot hold ", dtype_name(dtype));
}

qdtype parse_type(const std::string &name) {
  std::string known;
  for (const TypeName &type : kTypes) {
    if (name == type.name) return type.dtype;
    known += cat(" ", type.name);
  }
  fail(QTN_EFORMAT, "dtype \"", name, "\" is not one of:", known);
}

qdtype parse_our_type(const std::string &name, qdtype stored) {
  for (int number = QTN_FLOAT32; number <= QTN_INT2; ++number) {
    const auto dtype = static_cast<qdtype>(number);
    if (name == dtype_name(dtype) && stored_dtype(dtype) == stored) return dtype;
  }
  fail(QTN_EFORMAT, "dtype \"", name, "\" cannot be stored as ", dtype_name(stored));
}

/// Where a tensor lies among the data.
struct Extent {
  std::int64_t begin, end;
  const std::string *name;
};

/// The format leaves no hole and lets nothing overlap.
void check_extents(std::vector<Extent> extents, std::uint64_t data_size) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent &a, const Extent &b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::int64_t end = 0;
  for (const Extent &extent : extents) {
    if (extent.begin != end)
      fail(QTN_EFORMAT, "tensor \"", *extent.name, "\" begins at byte ", extent.begin,
           " of the data, not where others end, at ", end);
    end = extent.end;
  }
  if (static_cast<std::uint64_t>(end) != data_size)
    fail(QTN_EFORMAT, "its tensors end at byte ", end, " of ", data_size, " bytes of data");
}

using OurRows = std::map<std::string, Attrs, std::less<>>;

/// What "__metadata__" says of our tensors, by name.
OurRows our_rows(const Attrs &metadata) {
  OurRows rows;
  for (JsonRow &row : parse_json_table(metadata.get_string(kOurs, "{}"), cat("\"", kOurs, "\" metadata")))
    rows.emplace(std::move(row.name), std::move(row.fields));
  return rows;
}

StoredTensor parse_entry(const JsonRow &row, const Attrs *ours, std::uint64_t data_start, Extent &extent) {
  check_complete(row.fields, kEntry, "entry");
  const std::vector<std::int64_t> shape = row.fields.get_ints("shape"), offsets = row.fields.get_ints("data_offsets");
  StoredTensor t{row.name, parse_type(row.fields.get_string("dtype", "")), Shape(shape)};
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0])
    fail(QTN_EFORMAT, "\"data_offsets\" are no begin and end");
  extent = {offsets[0], offsets[1], &row.name};
  const std::int64_t count = element_count(t.shape), nbytes = offsets[1] - offsets[0];
  const auto size = static_cast<std::int64_t>(dtype_size(t.dtype));
  if (nbytes % size != 0 || nbytes / size != count)
    fail(QTN_EFORMAT, "\"data_offsets\" span ", nbytes, " bytes, a ", to_string(t.shape), " tensor has ", count,
         " times ", size);
  t.offset = data_start + static_cast<std::uint64_t>(offsets[0]);
  if (ours) {
    t.dtype = parse_our_type(ours->get_string("dtype", ""), t.dtype);
    if (ours->size() > 1) t.quantizer = read_members(*ours, t.dtype);
  }
  return t;
}

std::string read_header(const InputFile &file) {
  if (file.size() < kLengthBytes) fail(QTN_EFORMAT, "is no safetensors file: it has ", file.size(), " bytes");
  std::array<unsigned char, kLengthBytes> start;
  file.read(start.data(), 0, start.size());
  std::uint64_t length = 0;
  for (std::size_t i = start.size(); i-- > 0;) length = length << 8 | start[i];
  if (length > kMaxHeader || length > file.size() - kLengthBytes)
    fail(QTN_EFORMAT, "is no safetensors file: a header of ", length, " bytes in a file of ", file.size());
  std::string header(static_cast<std::size_t>(length), '\0');
  file.read(header.data(), kLengthBytes, header.size());
  return header;
}

}  // namespace

TensorFile open_safetensors(const std::string &path) { return read_safetensors(InputFile(path)); }

TensorFile read_safetensors(InputFile input) {
  const std::string path = input.path();
  const std::string header = checked(path, [&] { return read_header(input); });
  const std::uint64_t data_start = kLengthBytes + header.size(), data_size = input.size() - data_start;
  const std::vector<JsonRow> rows = parse_json_table(header, cat(path, ": header"));
  TensorFile file(std::move(input));
  OurRows ours;
  for (const JsonRow &row : rows)
    if (row.name == kMetadata) ours = checked(path, [&] { return our_rows(row.fields); });
  std::vector<Extent> extents;
  for (const JsonRow &row : rows) {
    if (row.name == kMetadata) continue;
    const auto of_row = ours.find(row.name);
    checked(cat(path, ": tensor \"", row.name, "\""), [&] {
      file.add(parse_entry(row, of_row == ours.end() ? nullptr : &of_row->second, data_start, extents.emplace_back()));
    });
  }
  checked(path, [&] { check_extents(extents, data_size); });
  return file;
}

namespace {

void check_names(std::span<const NamedTensor> tensors) {
  std::set<std::string_view> seen;
  for (const NamedTensor &t : tensors) {
    if (t.name == kMetadata) fail(QTN_EINVAL, "the name \"", kMetadata, "\" is the format's own");
    for (std::string_view left = t.name; !left.empty();) {
      const std::size_t length = utf8_length(left);
      if (length == 0) fail(QTN_EINVAL, "the name \"", t.name, "\" is not valid UTF-8");
      left.remove_prefix(length);
    }
    if (!seen.insert(t.name).second) fail(QTN_EINVAL, "the name \"", t.name, "\" comes twice");
  }
}

std::string our_metadata(std::span<const NamedTensor> tensors) {
  JsonWriter json;
  json.begin_object();
  for (const auto &[name, t] : tensors) {
    if (!t->quantized() && stored_dtype(t->dtype()) == t->dtype()) continue;
    json.key(name);
    json.begin_object();
    json.member("dtype", dtype_name(t->dtype()));
    if (t->quantized()) write_members(json, *t->quantizer());
    json.end_object();
  }
  json.end_object();
  return json.take();
}

std::string header_of(std::span<const NamedTensor> tensors) {
  JsonWriter json;
  json.begin_object();
  if (const std::string ours = our_metadata(tensors); ours != "{}") {
    json.key(kMetadata);
    json.begin_object();
    json.member(kOurs, ours);
    json.end_object();
  }
  std::size_t offset = 0;
  for (const auto &[name, t] : tensors) {
    const std::size_t end = offset + static_cast<std::size_t>(t->count()) * dtype_size(stored_dtype(t->dtype()));
    json.key(name);
    json.begin_object();
    json.member("dtype", type_name(t->dtype()));
    json.member("shape", t->shape());
    json.member("data_offsets", std::array{offset, end});
    json.end_object();
    offset = end;
  }
  json.end_object();
  std::string header = json.take();
  header.resize(round_up(header.size(), kHeaderAlignment), ' ');
  return header;
}

using Write = std::function<void(const void *bytes, std::size_t count)>;

/// Piece by piece.
void write_safetensors(std::span<const NamedTensor> tensors, const Write &write) {
  check_names(tensors);
  // The largest elements first: so each tensor is aligned for those who map the file.
  const auto size = [](const NamedTensor &t) { return dtype_size(stored_dtype(t.tensor->dtype())); };
  const std::vector<NamedTensor> sorted =
      stably_sorted(std::vector(tensors.begin(), tensors.end()),
                    [&](const NamedTensor &a, const NamedTensor &b) { return size(a) > size(b); });
  const std::string header = header_of(sorted);
  std::array<unsigned char, kLengthBytes> length;
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<unsigned char>(header.size() >> 8 * i);
  write(length.data(), length.size());
  write(header.data(), header.size());
  for (const NamedTensor &t : sorted) {
    const Tensor stored = to_stored(*t.tensor);
    write(stored.data(), stored.nbytes());
  }
}

}  // namespace

void save_safetensors(const std::string &path, std::span<const NamedTensor> tensors) {
  std::optional<OutputFile> file;  // which is made when nothing but itself can go wrong
  write_safetensors(tensors, [&](const void *from, std::size_t count) {
    if (!file) file.emplace(path);
    file->write(from, count);
  });
  file->commit();
}

std::string to_safetensors(std::span<const NamedTensor> tensors) {
  std::string bytes;
  write_safetensors(tensors,
                    [&](const void *from, std::size_t count) { bytes.append(static_cast<const char *>(from), count); });
  return bytes;
}

}  // namespace qtn::io
