// SPDX-License-Identifier: Apache-2.0
// What work may hold at a time: counted for the innermost scope of a thread, and given back there.
#include "base/limits.hpp"

#include <limits>

#include "base/parallel.hpp"
#include "check.hpp"

namespace qtn::test {
namespace {

constexpr std::size_t kLargest = std::numeric_limits<std::size_t>::max();

/// A limit for the scope.
class Limited {
 public:
  Limited(Limit which, std::int64_t value) : which_(which) { set_limit(which, value); }
  ~Limited() { set_limit(which_, 0); }
  Limited(const Limited &) = delete;
  Limited &operator=(const Limited &) = delete;

 private:
  Limit which_;
};

void zero_is_the_initial_value(void **) {
  const std::int64_t initial = limit(Limit::nodes);
  {
    const Limited nodes(Limit::nodes, 7);
    assert_int_equal(limit(Limit::nodes), 7);
    check_limit(Limit::nodes, 7);
    expect_error(QTN_ENOMEM, "8 nodes or values are over the limit nodes of 7", [] { check_limit(Limit::nodes, 8); });
  }
  assert_int_equal(limit(Limit::nodes), initial);
}

void scopes_count_for_themselves(void **) {
  const Limited bytes(Limit::load_bytes, 1000);
  assert_int_equal(Allowance::take(kLargest), 0);  // outside of any
  const Allowance outer(Limit::load_bytes, 100);
  const std::uint64_t scope = Allowance::take(600);
  {
    const Allowance inner(Limit::load_bytes);
    Allowance::take(1000);
    Allowance::give_back(scope, 600);  // of the outer one, which is not the innermost
    expect_error(QTN_ENOMEM, "1 bytes beside 1000 are over the limit load_bytes of 1000", [] { Allowance::take(1); });
  }
  expect_error(QTN_ENOMEM, "301 bytes beside 700", [] { Allowance::take(301); });
  Allowance::give_back(scope, 600);
  Allowance::take(900);
  expect_error(QTN_ENOMEM, "beside 1000", [] { Allowance::take(kLargest); });
  expect_error(QTN_ENOMEM, "2000 bytes beside 0", [] { const Allowance more(Limit::load_bytes, 2000); });
}

/// That of runs is in proportion to the model.
void without_a_number_any_amount(void **) {
  assert_int_equal(limit(Limit::run_bytes), 0);
  const Allowance run(Limit::run_bytes, 1);
  Allowance::take(kLargest - 1);
  expect_error(QTN_ENOMEM, "over the limit run_bytes", [] { Allowance::take(1); });
}

void threads_of_the_process(void **) {
  const int before = default_threads();
  set_default_threads(3);
  assert_int_equal(current_threads(), 3);
  for (const int count : {-1, 1025})
    expect_error(QTN_EINVAL, cat("threads: ", count, " is outside 0..1024"), [&] { set_default_threads(count); });
  assert_int_equal(default_threads(), 3);
  set_default_threads(0);
  assert_int_equal(default_threads(), before);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(zero_is_the_initial_value),
      cmocka_unit_test(scopes_count_for_themselves),
      cmocka_unit_test(without_a_number_any_amount),
      cmocka_unit_test(threads_of_the_process),
  };
  return cmocka_run_group_tests_name("base.limits", tests, nullptr, nullptr);
}
