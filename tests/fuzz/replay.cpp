// SPDX-License-Identifier: Apache-2.0
// A fuzz target without a fuzzer: runs it on files and on all files of folders, or with --random FIRST COUNT on numbers,
// from which targets that generate make what they test. Without sanitizers that is ten times as fast.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "fuzzing.hpp"

namespace {

void add_files(const std::filesystem::path &path, std::set<std::filesystem::path> &files) {
  if (std::filesystem::is_directory(path)) {
    for (const auto &entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.insert(entry.path());
  } else if (std::filesystem::exists(path)) {
    files.insert(path);
  }
}

/// What takes longer is a finding, as it is for the fuzzer.
constexpr unsigned kMostSeconds = 10;

std::uint64_t number;

void tell_number(int signal) {
  std::fprintf(stderr, "replay: --random %llu 1\n", static_cast<unsigned long long>(number));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run_numbers(std::uint64_t first, std::uint64_t count) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGALRM}) std::signal(signal, tell_number);
  for (number = first; number < first + count; ++number) {
    alarm(kMostSeconds);
    std::uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15ULL;
    mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9ULL;
    std::uint8_t bytes[sizeof mixed];
    std::memcpy(bytes, &mixed, sizeof mixed);
    LLVMFuzzerTestOneInput(bytes, sizeof bytes);
  }
  std::printf("%llu numbers\n", static_cast<unsigned long long>(count));
}

}  // namespace

int main(int count, char **paths) {
  if (count == 4 && std::strcmp(paths[1], "--random") == 0) {
    run_numbers(std::strtoull(paths[2], nullptr, 10), std::strtoull(paths[3], nullptr, 10));
    return 0;
  }
  std::set<std::filesystem::path> files;
  for (int i = 1; i < count; ++i) add_files(paths[i], files);
  if (files.empty()) {
    std::fprintf(stderr, "replay: no files\n");
    return 1;
  }
  for (const std::filesystem::path &path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::fprintf(stderr, "%s\n", path.c_str());  // the last one that is named is the one that fails
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
}
