// SPDX-License-Identifier: Apache-2.0
// What is written, another library's parser reads back as the same.
#include "base/json_writer.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "check.hpp"

namespace qtn {
namespace {

void layout(void **) {
  JsonWriter json;
  json.begin_object();
  json.member("text", "a");
  json.member("empty", std::vector<int>{});
  json.member("ints", std::vector<std::int64_t>{INT64_MIN, 0, INT64_MAX});
  json.key("nested");
  json.begin_list();
  for (const bool truth : {true, false}) {
    json.begin_object();
    json.member("truth", truth);
    json.end_object();
  }
  json.value(std::uint64_t{UINT64_MAX});
  json.end_list();
  json.end_object();
  assert_string_equal(json.take().c_str(),
                      R"({"text":"a","empty":[],"ints":[-9223372036854775808,0,9223372036854775807],)"
                      R"("nested":[{"truth":true},{"truth":false},18446744073709551615]})");
}

template <class T>
nlohmann::json read_back(const T &content) {
  JsonWriter json;
  json.value(content);
  return nlohmann::json::parse(json.take());
}

void reals_come_back_exactly(void **) {
  for (const double x :
       {0.0, -0.0, 1.0, 0.1, 1.0 / 3, 1e300, 5e-324, 1e5, 123456789.0, 1.7976931348623157e308, -2.5e-7}) {
    const nlohmann::json read = read_back(x);
    assert_true(read.is_number_float());
    assert_true(read.get<double>() == x && std::signbit(read.get<double>()) == std::signbit(x));
  }
  assert_true(read_back(std::numeric_limits<double>::infinity()).is_null());
  assert_true(read_back(std::numeric_limits<double>::quiet_NaN()).is_null());
}

void texts(void **) {
  std::string all;
  for (char c = 1; c != 127; ++c) all += c;
  all += '\0';
  all += "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 ,{[:\"\\";
  assert_true(read_back(all) == all);
  // Cut short, overlong, a surrogate, no lead byte, over the last character.
  const std::pair<std::string, int> broken[] = {
      {"\xe2\x82", 2}, {"\xc0\xaf", 2}, {"\xed\xa0\x80", 3}, {"\x80", 1}, {"\xf4\x90\x80\x80", 4}};
  for (const auto &[bytes, replaced] : broken) {
    std::string wanted = "a";
    for (int i = 0; i < replaced; ++i) wanted += "\xef\xbf\xbd";
    assert_true(read_back("a" + bytes + "b") == wanted + "b");
  }
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::layout), cmocka_unit_test(qtn::reals_come_back_exactly),
                              cmocka_unit_test(qtn::texts)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
