// SPDX-License-Identifier: Apache-2.0
// Well-formed sequences are those of table 3-7 of the Unicode standard, and no others.
#include "base/utf8.hpp"

#include "check.hpp"

namespace qtn::test {
namespace {

/// A row of the table: ranges of the first bytes, the last ones being 80 to BF.
struct Row {
  unsigned first, last, second_first, second_last;
  std::size_t length;
};
constexpr Row kTable[] = {{0x00, 0x7F, 0, 0xFF, 1},    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                          {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                          {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};

std::size_t wanted_of(unsigned lead, unsigned second) {
  for (const Row &row : kTable)
    if (lead >= row.first && lead <= row.last && second >= row.second_first && second <= row.second_last)
      return row.length;
  return 0;
}

void all_pairs_of_bytes(void **) {
  for (unsigned lead = 0; lead < 256; ++lead)
    for (unsigned second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(lead), static_cast<char>(second), '\x80', '\xBF'};
      const std::size_t got = utf8_length(text), want = wanted_of(lead, second);
      if (got != want) fail_test("bytes ", lead, " ", second, ": ", got, ", not ", want);
    }
}

void sequences_cut_short_or_broken_off(void **) {
  for (const std::string whole : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
    assert_int_equal(utf8_length(whole), whole.size());
    for (std::size_t size = 1; size < whole.size(); ++size) {
      assert_int_equal(utf8_length(whole.substr(0, size)), 0);
      std::string broken = whole;
      broken[size] = 'a';
      assert_int_equal(utf8_length(broken), 0);
    }
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(all_pairs_of_bytes),
                              cmocka_unit_test(sequences_cut_short_or_broken_off)};
  return cmocka_run_group_tests_name("base.utf8", tests, nullptr, nullptr);
}
