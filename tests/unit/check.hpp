// SPDX-License-Identifier: Apache-2.0
// What every unit test starts from: cmocka, expected errors, tensors and attributes in one expression.
#pragma once

extern "C" {
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
}
// Macros of cmocka's; functions of ours and of protozero's.
#undef fail
#undef skip

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "core/attrs.hpp"
#include "core/tensor.hpp"

namespace qtn::test {

/// Ends the test with the parts joined as its message.
template <class... Parts>
void fail_test(const Parts &...parts) {
  print_error("%s\n", cat(parts...).c_str());
  _fail(__FILE__, __LINE__);
}

/// One text or several: "a", {"a", "b"}, {}.
struct Texts {
  Texts(const std::string &one) : all{one} {}
  Texts(const char *one) : all{one} {}
  Texts(std::initializer_list<std::string> several) : all(several) {}
  Texts(const std::vector<std::string> &several) : all(several) {}
  std::vector<std::string> all;
};

/// Fails the test unless body() throws this status, with a message of one line that holds every one of the texts.
template <class Body>
void expect_error(qstatus status, const Texts &texts, Body body) {
  try {
    body();
  } catch (const Error &e) {
    const std::string message = e.what();
    if (e.status() != status) fail_test("status ", e.status(), ", not ", status, ": ", message);
    if (message.find('\n') != std::string::npos) fail_test("more than one line: ", message);
    for (const std::string &text : texts.all)
      if (message.find(text) == std::string::npos) fail_test("\"", message, "\" lacks \"", text, "\"");
    return;
  }
  fail_test("no error, but status ", status, " was expected", texts.all.empty() ? "" : " with " + texts.all[0]);
}

using Ints = std::vector<std::int64_t>;

/// Attributes in one expression: attrs({{"axis", std::int64_t{1}}}).
inline Attrs attrs(std::initializer_list<std::pair<const char *, Attr>> items = {}) {
  Attrs a;
  for (const auto &[key, value] : items) a.set(key, value);
  return a;
}

inline Tensor ints(const Ints &values) { return Tensor::from_ints(values); }

inline Tensor floats(const Shape &shape, const std::vector<float> &values) {
  return Tensor::from<float>(QTN_FLOAT32, shape, values);
}

}  // namespace qtn::test
