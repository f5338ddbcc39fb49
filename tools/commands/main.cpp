// SPDX-License-Identifier: Apache-2.0
// The `qtensor` command: a client of the public C API. Exit code 0 done, 1 failed, 2 wrong command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "commands/commands.hpp"
#include "shared/model.hpp"

namespace {

// Messages from elsewhere (exceptions, file names) may hold line breaks; the promise is one line.
int complain(int exit_code, std::string message) {
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  while (!message.empty() && message.back() == ' ') message.pop_back();
  std::fprintf(stderr, "qtensor: %s\n", message.c_str());
  return exit_code;
}

bool is_array(std::string_view argument) {
  return argument.size() > 4 && argument.front() != '-' && argument.find('=') != 0 && argument.ends_with(".npy");
}

// `--data a=a.npy b=b.npy` means `--data a=a.npy --data b=b.npy`, and `--data shard-*.npy`, of which a shell makes words,
// likewise. An option that took any number of words would also swallow the model that follows it.
std::vector<std::string> arguments(int argc, char **argv) {
  std::vector<std::string> words;
  std::string option;  // of which arrays are read; "" elsewhere
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--data" || word == "--validation")
      option = word;
    else if (!is_array(word))
      option.clear();
    else if (!option.empty() && words.back() != option)
      words.push_back(option);
    words.push_back(word);
  }
  std::reverse(words.begin(), words.end());  // the order CLI11 takes them in
  return words;
}

int wrong_command_line(const CLI::App &app, const CLI::ParseError &error) {
  const std::vector<std::string> unknown = app.get_subcommands().empty() ? app.remaining() : std::vector<std::string>();
  const std::string what = unknown.empty() ? error.what() : unknown.front() + ": no such sub-command or option";
  return complain(2, what + " (see qtensor --help)");
}

// What is printed may go to a disk that is full.
int finish() {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return written ? 0 : complain(1, "standard output cannot be written");
}

}  // namespace

int main(int argc, char **argv) {
  CLI::App app("Turns a float ONNX model into a small, fast int8 model, trains, and runs both.", "qtensor");
  app.set_version_flag("--version", "qtensor " + tool::library_version());
  app.require_subcommand(1);
  try {
    tool::add_quantize(app, {argv + 1, argv + argc});
    tool::add_calibrate(app);
    tool::add_merge(app);
    tool::add_sensitivity(app);
    tool::add_run(app);
    tool::add_compare(app);
    tool::add_bench(app);
    tool::add_inspect(app);
    tool::add_train(app, {argv + 1, argv + argc});
    app.parse(arguments(argc, argv));
    return finish();
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() != 0) return wrong_command_line(app, error);
    app.exit(error);  // prints the help or the version
    return finish();
  } catch (const tool::UsageError &error) {
    return complain(2, error.what());
  } catch (const std::bad_alloc &) {
    return complain(1, "out of memory");
  } catch (const std::exception &error) {
    return complain(1, error.what());
  }
}
