// SPDX-License-Identifier: Apache-2.0
#include "io/json_events.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace qtn::io {
namespace {

/// It has internal linkage, so that what nlohmann's parser has for binary formats is left out of the library.
class Adapter {
 public:
  Adapter(const std::string &where, JsonEvents &events) : where_(where), events_(events) {}

  bool null() {
    events_.null();
    return true;
  }
  bool boolean(bool truth) {
    events_.boolean(truth);
    return true;
  }
  bool number_integer(std::int64_t number) {
    events_.integer(number);
    return true;
  }
  bool number_unsigned(std::uint64_t number) {
    if (number > std::numeric_limits<std::int64_t>::max())
      fail(QTN_EFORMAT, events_.place(), ": ", number, " is over 63 bits");
    return number_integer(static_cast<std::int64_t>(number));
  }
  bool number_float(double number, const std::string &) {
    events_.real(number);
    return true;
  }
  bool string(std::string &text) {
    events_.text(std::move(text));
    return true;
  }
  bool binary(nlohmann::json::binary_t &) { return false; }  // JSON has none
  bool start_object(std::size_t) {
    events_.begin_object();
    return true;
  }
  bool key(std::string &name) {
    events_.key(std::move(name));
    return true;
  }
  bool end_object() {
    events_.end_object();
    return true;
  }
  bool start_array(std::size_t) {
    events_.begin_list();
    return true;
  }
  bool end_array() {
    events_.end_list();
    return true;
  }
  bool parse_error(std::size_t position, const std::string &, const nlohmann::json::exception &) {
    fail(QTN_EFORMAT, where_, ": is no JSON at byte ", position);
  }

 private:
  const std::string &where_;
  JsonEvents &events_;
};

}  // namespace

void parse_json(std::string_view text, const std::string &where, JsonEvents &events) {
  Adapter adapter(where, events);
  nlohmann::json::sax_parse(text.begin(), text.end(), &adapter);
}

}  // namespace qtn::io
