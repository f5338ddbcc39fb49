// SPDX-License-Identifier: Apache-2.0
// Configurations come back from their text as they were, and what is not a configuration is refused at its place.
#include "io/config_json.hpp"

#include "check.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr const char *kGood = R"({"recipe": "onnx", "rules": [{"selector": "op:Conv", "settings": {"bits": 4}}]})";

void round_trip(void **) {
  io::ConfigText config;
  config.recipe = "a \"name\"";
  config.rules.push_back({"op:Gemm", std::nullopt});
  config.rules.push_back(
      {"node:\n", attrs({{"bits", std::int64_t{4}}, {"percentile", 99.5}, {"observer", std::string("mse")}})});
  const std::string text = io::config_json(config);
  const io::ConfigText back = io::parse_config_json(text, "config");
  assert_string_equal(back.recipe.c_str(), "a \"name\"");
  assert_int_equal(back.rules.size(), 2);
  assert_string_equal(back.rules[0].selector.c_str(), "op:Gemm");
  assert_true(!back.rules[0].settings.has_value());
  assert_string_equal(back.rules[1].selector.c_str(), "node:\n");
  assert_int_equal(back.rules[1].settings->get_int("bits", 0), 4);
  assert_true(back.rules[1].settings->get_float("percentile", 0) == 99.5);
  assert_string_equal(back.rules[1].settings->get_string("observer", "").c_str(), "mse");
  assert_string_equal(io::config_json(back).c_str(), text.c_str());
  config.rules.clear();
  assert_true(io::parse_config_json(io::config_json(config), "config").rules.empty());
}

void texts_that_are_no_configuration(void **) {
  const struct {
    const char *what, *by, *says;
  } cases[] = {
      {"\"onnx\"", "null", "config: \"recipe\": null does not belong here"},
      {"\"onnx\"", "1", "config: \"recipe\": a number does not belong here"},
      {"\"onnx\"", "1.5", "config: \"recipe\": a number does not belong here"},
      {"\"onnx\"", "true", "config: \"recipe\": a boolean does not belong here"},
      {"\"onnx\"", "{}", "config: \"recipe\": an object does not belong here"},
      {"\"onnx\"", "[]", "config: \"recipe\": a list does not belong here"},
      {"\"recipe\": \"onnx\", ", "", "config: \"recipe\" is missing"},
      {"\"recipe\"", "\"rules\": [], \"rules\"", "config: \"rules\": \"rules\" is there twice"},
      {"\"recipe\"", "\"colour\"", "config: unknown member \"colour\"; valid are: recipe rules"},
      {"[{", "\"all\", \"x\": [{", "config: \"rules\": a text does not belong here"},
      {"[{", "[null, {", "config: rule 1: null does not belong here"},
      {"[{", "[[], {", "config: rule 1: a list does not belong here"},
      {"[{", "[\"all\", {", "config: rule 1: a text does not belong here"},
      {"\"op:Conv\"", "null", "config: rule 1: null does not belong here"},
      {"\"op:Conv\"", "{}", "config: rule 1: an object does not belong here"},
      {"\"selector\": \"op:Conv\", ", "", "config: rule 1: \"selector\" is missing"},
      {", \"settings\": {\"bits\": 4}", "", "config: rule 1: \"settings\" is missing"},
      {"\"settings\"", "\"selector\"", "config: rule 1: \"selector\" is there twice"},
      {"\"settings\"", "\"more\"", "config: rule 1: unknown member \"more\"; valid are: selector settings"},
      {"{\"bits\": 4}", "4", "config: rule 1: a number does not belong here"},
      {"{\"bits\": 4}", "[4]", "config: rule 1: a list does not belong here"},
      {"\"bits\": 4", "\"bits\": 4, \"bits\": 8", "config: rule 1: \"bits\" is there twice"},
      {"4", "null", "config: rule 1: null does not belong here"},
      {"4", "[4]", "config: rule 1: a list does not belong here"},
      {"4", "{}", "config: rule 1: an object does not belong here"},
      {"4", "9223372036854775808", "config: rule 1: 9223372036854775808 is over 63 bits"},
      {"}]}", "}]", "config: is no JSON at byte 79"},
  };
  for (const auto &c : cases) {
    std::string text = kGood;
    const std::size_t at = text.find(c.what);
    if (at == std::string::npos) fail_test("no ", c.what);
    text.replace(at, std::string(c.what).size(), c.by);
    try {
      io::parse_config_json(text, "config");
      fail_test("no error: ", text);
    } catch (const Error &e) {
      assert_int_equal(e.status(), QTN_EFORMAT);
      assert_string_equal(e.what(), c.says);
    }
  }
  for (const char *other : {"null", "1", "true", "\"onnx\"", "[]"})
    expect_error(QTN_EFORMAT, "config: ", [&] { io::parse_config_json(other, "config"); });
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::round_trip),
                              cmocka_unit_test(qtn::texts_that_are_no_configuration)};
  return cmocka_run_group_tests_name("io.config_json", tests, nullptr, nullptr);
}
