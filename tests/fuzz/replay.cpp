// SPDX-License-Identifier: Apache-2.0
// A fuzz target without a fuzzer, and without sanitizers ten times as fast. It takes files and folders of them, and runs
//   FILE...                         each of them
//   --changed FIRST COUNT FILE...   one of them each time, with edits (edits.hpp) that follow from a number
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

#include "edits.hpp"

namespace {

using Content = std::vector<std::uint8_t>;

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

std::uint64_t mixed(std::uint64_t n) {
  const std::uint64_t bits = (n + 1) * 0x9e3779b97f4a7c15ULL;
  return (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9ULL;
}

Content random_input(std::uint64_t n) {
  const std::uint64_t bits = mixed(n);
  Content bytes(sizeof bits);
  std::memcpy(bytes.data(), &bits, sizeof bits);
  return bytes;
}

Content changed(const std::vector<Content> &files, std::uint64_t n) {
  constexpr std::size_t kMostBytes = 64;  // about a dozen edits
  fuzz::Dice dice(mixed(n));
  const Content &file = files[dice.next() % files.size()];
  Content edits(8 + dice.next() % kMostBytes);
  for (std::uint8_t &byte : edits) byte = static_cast<std::uint8_t>(dice.next());
  edits[0] |= 1;  // not an input by itself
  return fuzz::edited(file, edits.data(), edits.size());
}

Content read(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <class InputOf>
void run_numbers(std::uint64_t first, std::uint64_t count, const InputOf &input_of) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGPROF}) std::signal(signal, tell_number);
  const itimerval limit{{}, {kMostSeconds, 0}};
  for (number = first; number < first + count; ++number) {
    setitimer(ITIMER_PROF, &limit, nullptr);
    const Content bytes = input_of(number);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%llu numbers\n", static_cast<unsigned long long>(count));
}

}  // namespace

int main(int count, char **arguments) {
  const std::string first = count < 2 ? "" : arguments[1];
  const bool random = first == "--random", numbers = random || first == "--changed";
  std::set<std::filesystem::path> files;
  for (int i = numbers ? 4 : 1; i < count; ++i) add_files(arguments[i], files);
  if (files.empty() != random || (numbers && count < 4)) {
    std::fprintf(stderr, "replay: FILE..., --changed FIRST COUNT FILE... or --random FIRST COUNT\n");
    return 1;
  }
  if (numbers) {
    mode = arguments[1];
    std::vector<Content> contents;
    for (const std::filesystem::path &path : files) contents.push_back(read(path));
    run_numbers(std::strtoull(arguments[2], nullptr, 10), std::strtoull(arguments[3], nullptr, 10),
                [&](std::uint64_t n) { return random ? random_input(n) : changed(contents, n); });
    return 0;
  }
  for (const std::filesystem::path &path : files) {
    std::fprintf(stderr, "%s\n", path.c_str());  // the last one that is named is the one that fails
    const Content bytes = read(path);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
}
