// SPDX-License-Identifier: Apache-2.0
#include "io/json_table.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.hpp"

namespace qtn::io {
namespace {

/// Takes the events of nlohmann's parser. A tree would hide names that come twice, and its destructor allocates.
class TableReader {
 public:
  explicit TableReader(const std::string &where) : where_(where) {}

  std::vector<JsonRow> take() { return std::move(rows_); }

  bool null() { refuse("null"); }
  bool boolean(bool) { refuse("a boolean"); }
  bool binary(nlohmann::json::binary_t &) { refuse("binary data"); }

  bool number_integer(std::int64_t number) { return add(number); }
  bool number_unsigned(std::uint64_t number) {
    if (number > std::numeric_limits<std::int64_t>::max()) fail(QTN_EFORMAT, place(), ": ", number, " is over 63 bits");
    return add(static_cast<std::int64_t>(number));
  }
  bool number_float(double number, const std::string &) { return add(number); }
  bool string(std::string &text) {
    if (depth_ != kRow) refuse("a text");
    return store(std::move(text));
  }

  bool start_object(std::size_t) {
    if (depth_ != kNothing && depth_ != kTable) refuse("an object");
    depth_ = depth_ == kNothing ? kTable : kRow;
    return true;
  }
  bool end_object() {
    depth_ = depth_ == kRow ? kTable : kNothing;
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ != kRow) refuse("a list");
    depth_ = kList;
    all_ints_ = true;
    ints_.clear();
    floats_.clear();
    return true;
  }
  bool end_array() {
    depth_ = kRow;
    return all_ints_ ? store(std::move(ints_)) : store(std::move(floats_));
  }

  bool key(std::string &name) {
    if (depth_ == kTable) {
      if (!names_.insert(name).second) fail(QTN_EFORMAT, where_, ": \"", name, "\" is there twice");
      rows_.push_back({std::move(name), {}});
    } else {
      if (rows_.back().fields.has(name)) fail(QTN_EFORMAT, place(), ": \"", name, "\" is there twice");
      field_ = std::move(name);
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string &, const nlohmann::json::exception &) {
    fail(QTN_EFORMAT, where_, ": is no JSON at byte ", position);
  }

 private:
  enum Depth { kNothing, kTable, kRow, kList };

  template <class Number>
  bool add(Number number) {
    if (depth_ == kRow) return store(number);
    if (depth_ != kList) refuse("a number");
    all_ints_ = all_ints_ && std::is_same_v<Number, std::int64_t>;
    if (all_ints_) ints_.push_back(static_cast<std::int64_t>(number));
    floats_.push_back(static_cast<double>(number));
    return true;
  }

  bool store(Attr value) {
    rows_.back().fields.set(std::move(field_), std::move(value));
    return true;
  }

  [[noreturn]] void refuse(const char *what) const { fail(QTN_EFORMAT, place(), ": ", what, " does not belong here"); }

  std::string place() const {
    if (depth_ == kNothing || rows_.empty()) return where_;
    if (depth_ == kTable) return cat(where_, ": \"", rows_.back().name, "\"");
    return cat(where_, ": \"", rows_.back().name, "\": \"", field_, "\"");
  }

  const std::string &where_;
  std::vector<JsonRow> rows_;
  std::unordered_set<std::string> names_;
  Depth depth_ = kNothing;
  std::string field_;
  bool all_ints_ = true;
  std::vector<std::int64_t> ints_;
  std::vector<double> floats_;
};

}  // namespace

std::vector<JsonRow> parse_json_table(std::string_view text, const std::string &where) {
  TableReader reader(where);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace qtn::io
