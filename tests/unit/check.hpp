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

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "core/attrs.hpp"
#include "core/tensor.hpp"

namespace qtn::test {

void fail_with_message(const std::string &message);

/// Ends the test with the parts joined as its message.
template <class... Parts>
void fail_test(const Parts &...parts) {
  fail_with_message(cat(parts...));
}

/// One text or several: "a", {"a", "b"}, {}.
struct Texts {
  Texts(const std::string &one);
  Texts(const char *one);
  Texts(std::initializer_list<std::string_view> several);
  Texts(const std::vector<std::string> &several);
  ~Texts();
  std::vector<std::string> all;
};

/// Fails the test unless body() throws this status, with a message of one line that holds every one of the texts.
void expect_error(qstatus status, const Texts &texts, const std::function<void()> &body);

using Ints = std::vector<std::int64_t>;

/// Attributes in one expression: attrs({{"axis", std::int64_t{1}}}).
Attrs attrs(std::initializer_list<std::pair<const char *, Attr>> items = {});

Tensor ints(const Ints &values);

Tensor floats(const Shape &shape, const std::vector<float> &values);

}  // namespace qtn::test
