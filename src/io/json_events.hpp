// SPDX-License-Identifier: Apache-2.0
// JSON read by its events. A tree would hide names that come twice, and its destructor allocates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qtn::io {

/// Told what is in a text, in its order. What it throws ends the work.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void null() = 0;
  virtual void boolean(bool truth) = 0;
  virtual void integer(std::int64_t number) = 0;
  virtual void real(double number) = 0;
  virtual void text(std::string text) = 0;
  virtual void begin_object() = 0;
  virtual void key(std::string name) = 0;
  virtual void end_object() = 0;
  virtual void begin_list() = 0;
  virtual void end_list() = 0;

  virtual std::string place() const = 0;  ///< where in the text this is, for messages
};

/// Throws QTN_EFORMAT for text that is no JSON ("<where>: ...") and for an integer over 63 bits.
void parse_json(std::string_view text, const std::string &where, JsonEvents &events);

}  // namespace qtn::io
