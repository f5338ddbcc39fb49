// SPDX-License-Identifier: Apache-2.0
// A file is written whole or not at all, whatever its name stands for: links, pipes, what is open already.
#include "base/whole_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "check.hpp"
#include "folder.hpp"

namespace qtn::test {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_whole(const std::string &path, const std::string &bytes) {
  assert_int_equal(WholeFile::check(path), 0);
  WholeFile file;
  assert_int_equal(file.open(path), 0);
  assert_int_equal(file.write(bytes.data(), bytes.size()), 0);
  assert_int_equal(file.commit(), 0);
}

/// Neither before the work nor at its end.
void expect_refused(const std::string &path, int error) {
  assert_int_equal(WholeFile::check(path), error);
  WholeFile file;
  assert_int_equal(file.open(path), error);
}

/// What is written meanwhile has a longer name, as far as there are such.
void names_as_long_as_there_are(void **) {
  const TemporaryFolder folder;
  for (const std::size_t length : {std::size_t{240}, std::size_t{NAME_MAX}}) {
    const std::string path = folder.path() + "/" + std::string(length, 'n');
    write_whole(path, "new");
    assert_string_equal(content_of(path).c_str(), "new");
  }
  assert_int_equal(folder.count(), 2);
}

void what_is_not_committed_leaves_nothing(void **) {
  const TemporaryFolder folder;
  const std::string path = folder.put("a", "old");
  {
    WholeFile file;
    assert_int_equal(file.open(path), 0);
    assert_int_equal(file.write("new", 3), 0);
    assert_int_equal(folder.count(), 2);
  }
  assert_int_equal(folder.count(), 1);
  assert_string_equal(content_of(path).c_str(), "old");
}

void what_cannot_be_put_in_its_place_leaves_nothing(void **) {
  const TemporaryFolder folder;
  {
    WholeFile file;
    assert_int_equal(file.open(folder.file("a")), 0);
    fs::create_directory(folder.file("a"));
    assert_int_equal(file.commit(), EISDIR);
  }
  assert_int_equal(folder.count(), 1);
}

void a_file_keeps_its_permissions(void **) {
  const TemporaryFolder folder;
  const std::string path = folder.put("a", "old");
  chmod(path.c_str(), 0640);
  write_whole(path, "new");
  struct stat status {};
  assert_int_equal(stat(path.c_str(), &status), 0);
  assert_int_equal(status.st_mode & 0777, 0640);
  assert_string_equal(content_of(path).c_str(), "new");
}

void links_stay_and_what_they_lead_to_is_replaced(void **) {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("there"));
  fs::create_symlink("there/file", folder.file("near"));
  fs::create_symlink(folder.file("near"), folder.file("far"));
  write_whole(folder.file("far"), "one");
  assert_string_equal(content_of(folder.file("there/file")).c_str(), "one");
  write_whole(folder.file("near"), "two");
  assert_string_equal(content_of(folder.file("there/file")).c_str(), "two");
  assert_true(fs::is_symlink(folder.file("far")) && fs::is_symlink(folder.file("near")));
  assert_int_equal(folder.count(), 3);
}

void names_without_a_folder(void **) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  fs::create_symlink("file", "link");
  write_whole("file", "one");
  write_whole("link", "two");
  fs::current_path(before);
  assert_string_equal(content_of(folder.file("file")).c_str(), "two");
}

void places_where_nothing_can_be_written(void **) {
  const TemporaryFolder folder;
  folder.put("file", "");
  fs::create_symlink("round", folder.file("round"));
  fs::create_symlink("absent/file", folder.file("lost"));
  expect_refused(folder.path(), EISDIR);
  expect_refused("/", EISDIR);
  expect_refused(folder.file("absent/file"), ENOENT);
  expect_refused(folder.file("file/file"), ENOTDIR);
  expect_refused(folder.file("lost"), ENOENT);
  expect_refused(folder.file("round"), ELOOP);
  expect_refused(folder.file(std::string(300, 'a')), ENAMETOOLONG);
}

void as_many_links_as_the_system_follows(void **) {
  const TemporaryFolder folder;
  for (int i = 0; i < 41; ++i) fs::create_symlink(cat("link", i + 1), folder.file(cat("link", i)));
  write_whole(folder.file("link1"), "end");
  assert_string_equal(content_of(folder.file("link41")).c_str(), "end");
  fs::remove(folder.file("link41"));
  expect_refused(folder.file("link0"), ELOOP);
}

void pipes_get_the_bytes_at_once(void **) {
  const TemporaryFolder folder;
  const std::string path = folder.file("pipe");
  assert_int_equal(mkfifo(path.c_str(), 0600), 0);
  {
    WholeFile file;
    assert_int_equal(file.open(path), ENXIO);  // nobody reads
  }
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  assert_true(reader >= 0);
  write_whole(path, "bytes");
  char got[8] = {};
  assert_int_equal(read(reader, got, sizeof got), 5);
  assert_string_equal(got, "bytes");
  close(reader);
  assert_true(fs::is_fifo(path));
  assert_int_equal(folder.count(), 1);
}

void devices_stay_what_they_are(void **) {
  write_whole("/dev/null", "bytes");
  assert_true(fs::is_character_file("/dev/null"));
  WholeFile full;
  assert_int_equal(full.open("/dev/full"), 0);
  assert_int_equal(full.write("bytes", 5), ENOSPC);
}

/// As /dev/stdout, where it is redirected.
void what_is_open_already_is_written_on(void **) {
  const TemporaryFolder folder;
  const int fd = open(folder.put("log", "").c_str(), O_WRONLY);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "before ", 7), 7);
  fs::create_symlink(cat("/proc/self/fd/", fd), folder.file("out"));
  write_whole(folder.file("out"), "in between ");
  write_whole(cat("/dev/fd/", fd), "and ");
  assert_int_equal(write(fd, "after", 5), 5);
  close(fd);
  assert_string_equal(content_of(folder.file("log")).c_str(), "before in between and after");
  WholeFile closed;
  assert_int_equal(closed.open(cat("/proc/self/fd/", fd)), ENOENT);
}

/// What another process has open has no number here.
void files_of_other_processes(void **) {
  const TemporaryFolder folder;
  const std::string path = folder.put("log", "");
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open(path.c_str(), O_WRONLY);
    const bool told = dup2(fd, 100) == 100 && write(ends[1], "x", 1) == 1;
    pause();
    _exit(told ? 0 : 1);
  }
  char ready = 0;
  assert_int_equal(read(ends[0], &ready, 1), 1);
  write_whole(cat("/proc/", child, "/fd/100"), "theirs");
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, nullptr, 0), child);
  close(ends[0]), close(ends[1]);
  assert_string_equal(content_of(path).c_str(), "theirs");
}

void folders_that_refuse(void **) {
  if (geteuid() == 0) return;  // whom nothing refuses
  const TemporaryFolder folder;
  fs::create_directory(folder.file("shut"));
  chmod(folder.file("shut").c_str(), 0500);
  expect_refused(folder.file("shut/file"), EACCES);
  chmod(folder.file("shut").c_str(), 0700);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(names_as_long_as_there_are),
      cmocka_unit_test(what_is_not_committed_leaves_nothing),
      cmocka_unit_test(what_cannot_be_put_in_its_place_leaves_nothing),
      cmocka_unit_test(a_file_keeps_its_permissions),
      cmocka_unit_test(links_stay_and_what_they_lead_to_is_replaced),
      cmocka_unit_test(names_without_a_folder),
      cmocka_unit_test(places_where_nothing_can_be_written),
      cmocka_unit_test(as_many_links_as_the_system_follows),
      cmocka_unit_test(pipes_get_the_bytes_at_once),
      cmocka_unit_test(devices_stay_what_they_are),
      cmocka_unit_test(what_is_open_already_is_written_on),
      cmocka_unit_test(files_of_other_processes),
      cmocka_unit_test(folders_that_refuse),
  };
  return cmocka_run_group_tests_name("base.whole_file", tests, nullptr, nullptr);
}
