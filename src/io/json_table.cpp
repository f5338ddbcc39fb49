// SPDX-License-Identifier: Apache-2.0
#include "io/json_table.hpp"

#include <unordered_set>

#include "base/error.hpp"
#include "io/json_events.hpp"

namespace qtn::io {
namespace {

class TableReader final : public JsonEvents {
 public:
  explicit TableReader(const std::string &where) : where_(where) {}

  std::vector<JsonRow> take() { return std::move(rows_); }

  void null() override { refuse("null"); }
  void boolean(bool) override { refuse("a boolean"); }
  void integer(std::int64_t number) override { add(number); }
  void real(double number) override { add(number); }
  void text(std::string text) override {
    if (depth_ != kRow) refuse("a text");
    store(std::move(text));
  }

  void begin_object() override {
    if (depth_ != kNothing && depth_ != kTable) refuse("an object");
    depth_ = depth_ == kNothing ? kTable : kRow;
  }
  void end_object() override { depth_ = depth_ == kRow ? kTable : kNothing; }
  void begin_list() override {
    if (depth_ != kRow) refuse("a list");
    depth_ = kList;
    all_ints_ = true;
    ints_.clear();
    floats_.clear();
  }
  void end_list() override {
    depth_ = kRow;
    all_ints_ ? store(std::move(ints_)) : store(std::move(floats_));
  }

  void key(std::string name) override {
    if (depth_ == kTable) {
      if (!names_.insert(name).second) fail(QTN_EFORMAT, where_, ": \"", name, "\" is there twice");
      rows_.push_back({std::move(name), {}});
    } else {
      if (rows_.back().fields.has(name)) fail(QTN_EFORMAT, place(), ": \"", name, "\" is there twice");
      field_ = std::move(name);
    }
  }

  std::string place() const override {
    if (depth_ == kNothing || rows_.empty()) return where_;
    if (depth_ == kTable) return cat(where_, ": \"", rows_.back().name, "\"");
    return cat(where_, ": \"", rows_.back().name, "\": \"", field_, "\"");
  }

 private:
  enum Depth { kNothing, kTable, kRow, kList };

  template <class Number>
  void add(Number number) {
    if (depth_ == kRow) return store(number);
    if (depth_ != kList) refuse("a number");
    all_ints_ = all_ints_ && std::is_same_v<Number, std::int64_t>;
    if (all_ints_) ints_.push_back(static_cast<std::int64_t>(number));
    floats_.push_back(static_cast<double>(number));
  }

  void store(Attr value) { rows_.back().fields.set(std::move(field_), std::move(value)); }

  [[noreturn]] void refuse(const char *what) const { fail(QTN_EFORMAT, place(), ": ", what, " does not belong here"); }

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
  parse_json(text, where, reader);
  return reader.take();
}

}  // namespace qtn::io
