// SPDX-License-Identifier: Apache-2.0
// Which instructions a process begins with: the best of the CPU, or what the environment says, where the CPU has it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/cpu.hpp"
#include "check.hpp"

namespace qtn::test {
namespace {

constexpr Isa kAll[] = {Isa::scalar, Isa::avx2, Isa::avxvnni, Isa::avx512, Isa::avx512vnni,
                        Isa::amx,    Isa::neon, Isa::dotprod, Isa::i8mm};

/// The level of a process that has not asked before, in which `prepare` comes first.
template <class Prepare>
Isa begun_after(const Prepare &prepare) {
  std::fflush(nullptr);  // which both would write
  const pid_t child = fork();
  if (child == 0) {
    prepare();
    std::exit(static_cast<int>(isa()));
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return static_cast<Isa>(WEXITSTATUS(status));
}

Isa begun_with(const char *variable) {
  return begun_after([&] { variable ? setenv("QTENSOR_ISA", variable, 1) : unsetenv("QTENSOR_ISA"); });
}

/// Signals could not be handled on it once tiles are in use, and Linux gives none.
void tiles_need_stacks_for_signals_that_hold_them(void **) {
  if (begun_with(nullptr) != Isa::amx) return;
  const Isa small = begun_after([] {
    unsetenv("QTENSOR_ISA");
    static char memory[2048];
    const stack_t stack{memory, 0, sizeof memory};
    if (sigaltstack(&stack, nullptr) != 0) _exit(99);
  });
  assert_true(small == Isa::avx512vnni);
}

void the_environment_says_where_to_begin(void **) {
  const Isa best = begun_with(nullptr);
  assert_true(best == Isa::scalar || cpu_has(best));
  for (const Isa level : kAll) {
    const bool ours = level == Isa::scalar || cpu_has(level);
    if (ours && begun_with(isa_name(level)) != level) fail_test("QTENSOR_ISA=", isa_name(level), " is not followed");
    if (level > best && begun_with(isa_name(level)) != best) fail_test(isa_name(level), " is not of this CPU");
  }
  for (const char *unknown : {"", "mmx", "AVX2"}) assert_true(begun_with(unknown) == best);
}

void a_level_that_the_cpu_does_not_have(void **) {
  set_isa("scalar");
  assert_true(isa() == Isa::scalar);
  const char *foreign = cpu_has(Isa::neon) ? "avx2" : "neon";
  expect_error(QTN_EUNSUPPORTED, {"isa: this CPU offers up to ", cat(", not ", foreign)}, [&] { set_isa(foreign); });
  expect_error(QTN_EINVAL, "isa: name \"mmx\" is unknown; known are scalar", [] { set_isa("mmx"); });
  assert_true(isa() == Isa::scalar);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(tiles_need_stacks_for_signals_that_hold_them),
                              cmocka_unit_test(the_environment_says_where_to_begin),
                              cmocka_unit_test(a_level_that_the_cpu_does_not_have)};
  return cmocka_run_group_tests_name("base.isa", tests, nullptr, nullptr);
}
