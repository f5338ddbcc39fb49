// SPDX-License-Identifier: Apache-2.0
// The locales of a program change nothing that the library writes: neither C++'s, with dots between thousands, nor C's,
// with a comma before fractions.
#include <clocale>
#include <fstream>
#include <locale>

#include "base/json_writer.hpp"
#include "check.hpp"
#include "folder.hpp"
#include "io/npy.hpp"

namespace qtn::test {
namespace {

struct German : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

/// The same in every locale, or it is wrong in one.
std::string everything() {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.npy");
  const Tensor t(QTN_FLOAT32, {1000, 2});
  std::fill_n(t.as<float>(), t.count(), 1234.5f);
  io::save_npy(path, t);
  std::ifstream file(path, std::ios::binary);
  const std::string header(std::istreambuf_iterator<char>(file), {});
  JsonWriter json;
  json.begin_object();
  json.member("number", 1234567.25);
  json.member("count", std::int64_t{1234567});
  json.end_object();
  if (io::open_npy(path).tensors()[0].shape != t.shape()) fail_test("the file does not come back");
  return header.substr(0, 128) + cat(1234567, " ", 0.5, " ", 1e-7, " ", 123456789u) + json.take() + describe(t) +
         describe(floats({2}, {0.5f, 1e-6f}));
}

void locales_change_nothing(void **) {
  const std::string want = everything();
  if (want.find("(1000, 2)") == std::string::npos || want.find("1234567 0.5 1e-07 123456789") == std::string::npos)
    fail_test(want);
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new German));
  const std::string got = everything();
  std::locale::global(before);
  assert_string_equal(got.c_str(), want.c_str());
  for (const char *name : {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8"}) {  // those that the system has
    if (!std::setlocale(LC_ALL, name)) continue;
    const std::string there = everything();
    std::setlocale(LC_ALL, "C");
    assert_string_equal(there.c_str(), want.c_str());
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::locales_change_nothing)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
