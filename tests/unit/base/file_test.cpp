// SPDX-License-Identifier: Apache-2.0
// Files that are read: whole, in parts, and beyond their end; and bytes that stand for one.
#include "base/file.hpp"

#include <sys/stat.h>

#include <cstring>

#include "check.hpp"
#include "folder.hpp"

namespace qtn::test {
namespace {

/// What the file of a path, and bytes in its place, say to the same reads.
template <class Body>
void each_way(const std::string &content, const Body &body) {
  const TemporaryFolder folder;
  body(InputFile(folder.put("file", content)));
  body(InputFile("bytes", std::as_bytes(std::span(content))));
}

void parts(void **) {
  each_way("abcdef", [](const InputFile &file) {
    assert_int_equal(file.size(), 6);
    char part[4] = {};
    file.read(part, 2, 3);
    assert_string_equal(part, "cde");
    file.read(part, 6, 0);
    assert_string_equal(part, "cde");
  });
}

void beyond_the_end(void **) {
  each_way("abcdef", [](const InputFile &file) {
    char part[8] = {};
    expect_error(QTN_EIO, file.path() + ": ended 2 bytes early", [&] { file.read(part, 4, 4); });
    expect_error(QTN_EIO, "ended 1 bytes early", [&] { file.read(part, 6, 1); });
    expect_error(QTN_EIO, "ended 3 bytes early", [&] { file.read(part, std::uint64_t{1} << 40, 3); });
  });
}

/// A number of bytes that no file has at all.
void places_that_are_no_offset(void **) {
  const TemporaryFolder folder;
  const InputFile file(folder.put("file", "abc"));
  char byte = 0;
  expect_error(QTN_EIO, file.path() + ": Invalid argument", [&] { file.read(&byte, std::uint64_t{1} << 63, 1); });
}

void what_is_no_regular_file(void **) {
  const TemporaryFolder folder;
  expect_error(QTN_EIO, "Is a directory", [&] { InputFile(folder.path()); });
  expect_error(QTN_EIO, "No such file", [&] { InputFile(folder.file("absent")); });
  assert_int_equal(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expect_error(QTN_EIO, "not a regular file", [&] { InputFile(folder.file("pipe")); });
}

void a_file_that_moves_stays_open(void **) {
  const TemporaryFolder folder;
  InputFile first(folder.put("file", "abc"));
  const InputFile second(std::move(first));
  char byte = 0;
  second.read(&byte, 1, 1);
  assert_int_equal(byte, 'b');
}

void written_and_read_again(void **) {
  const TemporaryFolder folder;
  const std::string path = folder.file("file"), content("a\0b\n", 4);
  write_file(path, content);
  const std::vector<char> got = read_file(path);
  assert_true(std::string(got.begin(), got.end()) == content);
  expect_error(QTN_EIO, "No such file", [&] { write_file(folder.file("absent/file"), content); });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(parts),
      cmocka_unit_test(beyond_the_end),
      cmocka_unit_test(places_that_are_no_offset),
      cmocka_unit_test(what_is_no_regular_file),
      cmocka_unit_test(a_file_that_moves_stays_open),
      cmocka_unit_test(written_and_read_again),
  };
  return cmocka_run_group_tests_name("base.file", tests, nullptr, nullptr);
}
