// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: cmocka, golden files, expected errors.
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
#undef fail  // a macro of cmocka's, a function of ours

#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
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

inline nlohmann::json golden(const std::string &name) {
  std::ifstream file(std::string(QTN_GOLDEN_DIR) + "/quant/" + name);
  if (!file) fail_test("no golden file ", name);
  return nlohmann::json::parse(file);
}

inline double number(const nlohmann::json &j) {
  if (!j.is_string()) return j.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto text = j.get<std::string>();
  return text == "inf" ? infinity : text == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

inline std::vector<double> numbers(const nlohmann::json &tensor) {
  std::vector<double> values;
  for (const auto &v : tensor.at("data")) values.push_back(number(v));
  return values;
}

inline Shape shape_of(const nlohmann::json &tensor) {
  Shape shape;
  for (const auto &dim : tensor.at("shape")) shape.push_back(dim.get<std::int64_t>());
  return shape;
}

inline Tensor floats(const Shape &shape, const std::vector<float> &values) {
  return Tensor::from<float>(QTN_FLOAT32, shape, values);
}

inline Tensor float_tensor(const nlohmann::json &tensor) {
  std::vector<float> values;
  for (const double v : numbers(tensor)) values.push_back(static_cast<float>(v));
  return floats(shape_of(tensor), values);
}

/// Fails the test unless body() throws this status with this text in the message.
template <class Body>
void expect_error(qstatus status, const std::string &text, Body body) {
  try {
    body();
  } catch (const Error &e) {
    if (e.status() != status) fail_test("status ", e.status(), ", not ", status, ": ", e.what());
    if (std::string(e.what()).find(text) == std::string::npos) fail_test("\"", e.what(), "\" lacks \"", text, "\"");
    return;
  }
  fail_test("no error, but one with \"", text, "\" was expected");
}

/// Attributes in one expression: attrs({{"dtype", "int8"}, {"axis", std::int64_t{1}}}).
inline Attrs attrs(std::initializer_list<std::pair<const char *, Attr>> items) {
  Attrs a;
  for (const auto &[key, value] : items) a.set(key, value);
  return a;
}

}  // namespace qtn::test
