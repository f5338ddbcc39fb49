// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy: magic, version, a header that is a Python dictionary, then the elements.
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "array.hpp"

namespace tool {

namespace {

struct NamedType {
  std::string_view descr;
  qdtype dtype;
};

constexpr std::array<NamedType, 11> kTypes = {{{"<f4", QTN_FLOAT32},
                                               {"<f8", QTN_FLOAT64},
                                               {"<f2", QTN_FLOAT16},
                                               {"<i8", QTN_INT64},
                                               {"<i4", QTN_INT32},
                                               {"<i2", QTN_INT16},
                                               {"<u2", QTN_UINT16},
                                               {"|i1", QTN_INT8},
                                               {"|u1", QTN_UINT8},
                                               {"|b1", QTN_BOOL},
                                               {"|?", QTN_BOOL}}};

constexpr size_t kMaxHeader = 65536;
constexpr size_t kMaxRank = 32;

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (200, 1, 8, 8), } and nothing more of Python.
class HeaderParser {
 public:
  HeaderParser(const std::string &path, std::string_view text) : path_(path), text_(text) {}

  void parse(Array &array) {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        array.stored = type(quoted());
        has_descr = true;
      } else if (key == "fortran_order") {
        fortran_ = boolean();
        has_order = true;
      } else if (key == "shape") {
        array.shape = shape();
        has_shape = true;
      } else {
        broken();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape) broken();
    if (fortran_ && array.shape.size() > 1)
      throw Failure(path_ + ": is in Fortran order; save it with numpy.ascontiguousarray");
  }

 private:
  [[noreturn]] void broken() const { throw Failure(path_ + ": has a broken .npy header"); }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

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
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) broken();
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  bool boolean() {
    skip_spaces();
    for (const auto &[word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    broken();
  }

  Shape shape() {
    Shape extents;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      int64_t extent = -1;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0 || extents.size() == kMaxRank) broken();
      at_ = static_cast<size_t>(end - text_.data());
      extents.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  qdtype type(std::string_view descr) const {
    for (const NamedType &known : kTypes)
      if (known.descr == descr) return known.dtype;
    throw Failure(path_ + ": element type '" + std::string(descr.substr(0, 32)) +
                  "' is not one of float32, float64, float16, int64, int32, int16, int8, uint16, uint8, bool "
                  "(little-endian)");
  }

  const std::string &path_;
  std::string_view text_;
  size_t at_ = 0;
  bool fortran_ = false;
};

}  // namespace

Array open_npy(const std::string &path) {
  Array array;
  array.file = std::make_shared<InputFile>(path);
  std::array<unsigned char, 12> start{};
  const auto readable = static_cast<size_t>(std::min<uint64_t>(start.size(), array.file->size()));
  array.file->read(start.data(), 0, readable);
  if (readable < 10 || std::memcmp(start.data(), "\x93NUMPY", 6) != 0) throw Failure(path + ": is not a .npy file");
  const unsigned major = start[6];
  if (major < 1 || major > 3) throw Failure(path + ": .npy version " + std::to_string(major) + " is not known");
  const size_t before = major == 1 ? 10 : 12;
  size_t length = start[8] | static_cast<size_t>(start[9]) << 8;
  if (major > 1) length |= static_cast<size_t>(start[10]) << 16 | static_cast<size_t>(start[11]) << 24;
  if (length > kMaxHeader || before + length > array.file->size()) throw Failure(path + ": has a broken .npy header");
  std::string header(length, '\0');
  array.file->read(header.data(), before, length);
  HeaderParser(path, header).parse(array);
  array.offset = before + length;
  array.validate();
  return array;
}

void write_npy(const std::string &path, const Result &result) {
  std::string_view descr;
  for (const NamedType &known : kTypes)
    if (descr.empty() && known.dtype == result.dtype) descr = known.descr;
  if (descr.empty())
    throw Failure(path + ": a .npy file cannot hold " + qdtype_name(result.dtype) + "; use .safetensors");
  std::string shape;
  for (const int64_t extent : result.shape) shape += std::to_string(extent) + ", ";
  if (result.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  const std::array<char, 4> start = {1, 0, static_cast<char>(header.size() & 0xff),
                                     static_cast<char>(header.size() >> 8)};
  OutputFile file(path);
  file.write("\x93NUMPY");
  file.write(start.data(), start.size());
  file.write(header);
  file.write(result.data.data(), result.data.size());
  file.commit();
}

}  // namespace tool
