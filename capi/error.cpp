// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "guard.hpp"

namespace qtn::capi {
namespace {

constexpr std::size_t kCapacity = 1024;
thread_local char message[kCapacity] = "";
thread_local unsigned messages = 0;

/// Messages that already say who speaks ("Conv: ...", "qtensor_create: ...") need no second name.
bool names_speaker(const char *text) {
  const char *end = text;
  while (*end && *end != ' ' && *end != '\n' && *end != ':') ++end;
  return end != text && end[0] == ':' && end[1] == ' ';
}

/// Appends at `at`, with one line made of many; returns the new end.
std::size_t append(std::size_t at, const char *text) {
  for (; *text && at + 1 < kCapacity; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    message[at++] = byte < 0x20 || byte == 0x7f ? ' ' : *text;
  }
  return at;
}

/// A cut in the middle of a UTF-8 sequence goes back to its beginning.
std::size_t whole_characters(std::size_t end) {
  if (end + 1 < kCapacity) return end;
  std::size_t start = end;
  while (start > 0 && (static_cast<unsigned char>(message[start - 1]) & 0xc0) == 0x80) --start;
  if (start == 0) return end;
  const auto lead = static_cast<unsigned char>(message[start - 1]);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start - 1 + length > end ? start - 1 : end;
}

}  // namespace

void set_message(const char *entry, const char *text) noexcept {
  std::size_t end = 0;
  if (!names_speaker(text)) end = append(append(end, entry), ": ");
  end = whole_characters(append(end, text));
  message[end] = '\0';
  ++messages;
}

unsigned message_count() noexcept { return messages; }

}  // namespace qtn::capi

const char *qerror_message(void) { return qtn::capi::message; }

const char *qstatus_name(qstatus status) {
  switch (status) {
    case QTN_OK:
      return "QTN_OK";
    case QTN_EINVAL:
      return "QTN_EINVAL";
    case QTN_ESHAPE:
      return "QTN_ESHAPE";
    case QTN_EDTYPE:
      return "QTN_EDTYPE";
    case QTN_ENOMEM:
      return "QTN_ENOMEM";
    case QTN_EIO:
      return "QTN_EIO";
    case QTN_EFORMAT:
      return "QTN_EFORMAT";
    case QTN_EUNSUPPORTED:
      return "QTN_EUNSUPPORTED";
    case QTN_ESTATE:
      return "QTN_ESTATE";
    case QTN_EINTERNAL:
      return "QTN_EINTERNAL";
    case QTN_ECANCELED:
      return "QTN_ECANCELED";
    case QTN_STATUS_FORCE32:
      break;
  }
  return "QTN_?";
}
