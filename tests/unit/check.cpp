// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

namespace qtn::test {

void fail_with_message(const std::string &message) {
  print_error("%s\n", message.c_str());
  _fail(__FILE__, __LINE__);
}

Texts::Texts(const std::string &one) : all{one} {}
Texts::Texts(const char *one) : all{one} {}
Texts::Texts(std::initializer_list<std::string_view> several) : all(several.begin(), several.end()) {}
Texts::Texts(const std::vector<std::string> &several) : all(several) {}
Texts::~Texts() = default;

void expect_error(qstatus status, const Texts &texts, const std::function<void()> &body) {
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

Attrs attrs(std::initializer_list<std::pair<const char *, Attr>> items) {
  Attrs a;
  for (const auto &[key, value] : items) a.set(key, value);
  return a;
}

Tensor ints(const Ints &values) { return Tensor::from_ints(values); }

Tensor floats(const Shape &shape, const std::vector<float> &values) {
  return Tensor::from<float>(QTN_FLOAT32, shape, values);
}

}  // namespace qtn::test
