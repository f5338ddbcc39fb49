// SPDX-License-Identifier: Apache-2.0
#include "io/npy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/memory.hpp"
#include "io/checked.hpp"

namespace qtn::io {
namespace {

struct TypeCode {
  std::string_view code;  ///< NumPy's, without the byte order
  qdtype dtype;
};

// NumPy has no code of its own for bfloat16, float8 and types below 8 bits.
constexpr std::array<TypeCode, 12> kTypes = {{{"f8", QTN_FLOAT64},
                                              {"f4", QTN_FLOAT32},
                                              {"f2", QTN_FLOAT16},
                                              {"i8", QTN_INT64},
                                              {"i4", QTN_INT32},
                                              {"u8", QTN_UINT64},
                                              {"u4", QTN_UINT32},
                                              {"i2", QTN_INT16},
                                              {"u2", QTN_UINT16},
                                              {"i1", QTN_INT8},
                                              {"u1", QTN_UINT8},
                                              {"b1", QTN_BOOL}}};

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 65536;
constexpr std::size_t kAlignmentOfData = 64;

/// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (200, 1, 8, 8), } and nothing more of Python.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  StoredTensor parse() {
    StoredTensor t;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_descr)
        has_descr = read_type(t);
      else if (key == "fortran_order" && !has_order)
        has_order = read_order(t);
      else if (key == "shape" && !has_shape)
        has_shape = read_shape(t);
      else
        fail(QTN_EFORMAT, "the header has a second or unknown key '", key, "'");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) broken();
    if (!has_descr || !has_order || !has_shape)
      fail(QTN_EFORMAT, "the header lacks '", !has_descr ? "descr" : !has_order ? "fortran_order" : "shape", "'");
    return t;
  }

 private:
  [[noreturn]] void broken() const { fail(QTN_EFORMAT, "the header is broken at byte ", at_); }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \n\t", at_), text_.size()); }

  bool accept(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) broken();
  }

  std::string_view quoted() {
    skip_spaces();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) broken();
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) broken();
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  bool read_type(StoredTensor &t) {
    const std::string_view descr = quoted();
    const std::string_view order = descr.substr(0, 1), code = descr.substr(order.size());
    const auto type = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeCode &k) { return k.code == code; });
    if (type == kTypes.end() || (order != "<" && order != ">" && order != "|")) {
      std::string known;
      for (const TypeCode &k : kTypes) known += cat(" ", k.code);
      fail(QTN_EFORMAT, "element type '", descr.substr(0, 32), "' is not one of:", known, " (after < > or |)");
    }
    t.dtype = type->dtype;
    t.big_endian = order == ">";
    return true;
  }

  bool read_order(StoredTensor &t) {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    t.fortran_order = rest.starts_with("True");
    if (!t.fortran_order && !rest.starts_with("False")) broken();
    at_ += t.fortran_order ? 4 : 5;
    return true;
  }

  bool read_shape(StoredTensor &t) {
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      std::int64_t dim = -1;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) broken();
      at_ = static_cast<std::size_t>(end - text_.data());
      t.shape.push_back(dim);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

StoredTensor read_header(const InputFile &file) {
  std::array<unsigned char, 12> start{};
  file.read(start.data(), 0, static_cast<std::size_t>(std::min<std::uint64_t>(start.size(), file.size())));
  if (!std::equal(kMagic.begin(), kMagic.end(), start.begin(),
                  [](char a, unsigned char b) { return a == static_cast<char>(b); }))
    fail(QTN_EFORMAT, "is no .npy file");
  const unsigned version = start[6];
  if (version < 1 || version > 3) fail(QTN_EFORMAT, ".npy version ", version, " is not known");
  const std::size_t before = version == 1 ? 10 : 12;
  std::size_t length = 0;
  for (std::size_t i = before; i-- > 8;) length = length << 8 | start[i];
  if (length > kMaxHeader || before + length > file.size())
    fail(QTN_EFORMAT, "a header of ", length, " bytes in a file of ", file.size());
  std::string header(length, '\0');
  file.read(header.data(), before, length);
  StoredTensor t = HeaderParser(header).parse();
  t.offset = before + length;
  return t;
}

std::string type_code(qdtype dtype) {
  for (const TypeCode &type : kTypes)
    if (type.dtype == dtype) return cat(dtype_size(dtype) == 1 ? '|' : '<', type.code);
  fail(QTN_EUNSUPPORTED, "a .npy file cannot hold ", dtype_name(dtype), "; a safetensors file can");
}

/// As NumPy lays it out: magic, version 1.0, length, dictionary, spaces up to the alignment, a line end.
std::string header_of(const Tensor &t) {
  std::string shape;
  for (const std::int64_t dim : t.shape()) shape += cat(shape.empty() ? "" : " ", dim, ",");
  if (t.rank() > 1) shape.pop_back();
  std::string header = cat("{'descr': '", type_code(t.dtype()), "', 'fortran_order': False, 'shape': (", shape, "), }");
  const std::size_t before = kMagic.size() + 4;
  header.resize(round_up(before + header.size() + 1, kAlignmentOfData) - before - 1, ' ');
  header += '\n';
  return cat(kMagic, '\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8),
             header);
}

}  // namespace

TensorFile open_npy(const std::string &path) {
  InputFile input(path);
  return checked(path, [&] {
    StoredTensor t = read_header(input);
    const std::uint64_t data_size = input.size() - t.offset;
    TensorFile file(std::move(input));
    file.add(t);
    const std::uint64_t nbytes = static_cast<std::uint64_t>(element_count(t.shape)) * dtype_size(t.dtype);
    if (nbytes != data_size)
      fail(QTN_EFORMAT, "a ", to_string(t.shape), " tensor of ", dtype_name(t.dtype), " has ", nbytes, " bytes, ",
           data_size, " are there");
    return file;
  });
}

void save_npy(const std::string &path, const Tensor &t) {
  if (t.quantized())
    fail(QTN_EDTYPE,
         "a .npy file cannot hold a quantized tensor; write the integers that qtensor_int_repr takes of it, "
         "or the values that qtensor_dequantize gives");
  const std::string header = header_of(t);
  const Tensor elements = t.to_contiguous();
  OutputFile file(path);
  file.write(header);
  file.write(elements.data(), elements.nbytes());
  file.commit();
}

}  // namespace qtn::io
