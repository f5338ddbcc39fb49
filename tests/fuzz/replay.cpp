// SPDX-License-Identifier: Apache-2.0
// A fuzz target without a fuzzer, and without sanitizers ten times as fast. It takes files and folders of them, and runs
//   FILE...                         each of them
//   --changed FIRST COUNT FILE...   what changes.hpp makes of them by number
//   --random FIRST COUNT            numbers alone, from which targets that generate make what they test
#include <sys/time.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "changes.hpp"
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

/// What takes longer is a finding, as it is for the fuzzer. Counted is the time of the processor, which others share.
constexpr time_t kMostSeconds = 10;

const char *mode;
std::uint64_t number;

void tell_number(int signal) {
  std::fprintf(stderr, "replay: %s %llu 1\n", mode, static_cast<unsigned long long>(number));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

fuzz::Content mixed(std::uint64_t n) {
  std::uint64_t bits = (n + 1) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9ULL;
  fuzz::Content bytes(sizeof bits);
  std::memcpy(bytes.data(), &bits, sizeof bits);
  return bytes;
}

fuzz::Content read(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <class InputOf>
void run_numbers(std::uint64_t first, std::uint64_t count, const InputOf &input_of) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGPROF}) std::signal(signal, tell_number);
  const itimerval limit{{}, {kMostSeconds, 0}};
  for (number = first; number < first + count; ++number) {
    setitimer(ITIMER_PROF, &limit, nullptr);
    const fuzz::Content bytes = input_of(number);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%llu numbers\n", static_cast<unsigned long long>(count));
}

}  // namespace

int main(int count, char **arguments) {
  const bool numbers = count >= 4 && std::strncmp(arguments[1], "--", 2) == 0;
  std::set<std::filesystem::path> files;
  for (int i = numbers ? 4 : 1; i < count; ++i) add_files(arguments[i], files);
  const bool random = numbers && std::strcmp(arguments[1], "--random") == 0;
  if (files.empty() != random) {
    std::fprintf(stderr, random ? "replay: --random takes no files\n" : "replay: no files\n");
    return 1;
  }
  if (numbers) {
    mode = arguments[1];
    const std::uint64_t first = std::strtoull(arguments[2], nullptr, 10),
                        many = std::strtoull(arguments[3], nullptr, 10);
    std::vector<fuzz::Content> contents;
    for (const std::filesystem::path &path : files) contents.push_back(read(path));
    run_numbers(first, many, [&](std::uint64_t n) { return random ? mixed(n) : fuzz::changed(contents, n); });
    return 0;
  }
  for (const std::filesystem::path &path : files) {
    std::fprintf(stderr, "%s\n", path.c_str());  // the last one that is named is the one that fails
    const fuzz::Content bytes = read(path);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
}
