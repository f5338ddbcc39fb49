// SPDX-License-Identifier: Apache-2.0
#include "base/pool.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "base/parallel.hpp"
#include "check.hpp"

namespace qtn::test {
namespace {

/// How often each index was done, and whether two threads were one lane at the same time.
struct Marks {
  std::vector<std::atomic<int>> times;
  std::vector<std::atomic<int>> in_lane;
  std::atomic<bool> shared_lane{false};

  Marks(std::size_t count, std::size_t lanes) : times(count), in_lane(lanes) {}

  static void mark(void *context, std::size_t begin, std::size_t end, std::size_t lane) {
    Marks &marks = *static_cast<Marks *>(context);
    if (marks.in_lane.at(lane).fetch_add(1) != 0) marks.shared_lane = true;
    for (std::size_t i = begin; i < end; ++i) marks.times[i].fetch_add(1);
    marks.in_lane[lane].fetch_sub(1);
  }

  void check(const std::string &what) const {
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times[i] != 1) fail_test(what, ": index ", i, " was done ", times[i].load(), " times");
    if (shared_lane) fail_test(what, ": two threads were one lane");
  }
};

void test_everything_is_done_once(void **) {
  Pool pool;
  for (const std::size_t lanes : {1, 2, 3, 8})
    for (const std::size_t count : {0, 1, 2, 7, 8, 31, 32, 33, 1000})
      for (int i = 0; i < 50; ++i) {
        Marks marks(count, lanes);
        pool.run(lanes, count, Marks::mark, &marks);
        marks.check(cat(lanes, " lanes, ", count, " indices"));
      }
}

/// One gets the pool, the other does its own work; both again and again.
void test_callers_at_the_same_time(void **) {
  Pool pool;
  const auto call = [&] {
    for (int i = 0; i < 300; ++i) {
      Marks marks(100, 3);
      pool.run(3, 100, Marks::mark, &marks);
      marks.check("two callers");
    }
  };
  std::thread other(call);
  call();
  other.join();
}

/// Threads that went to sleep come back.
void test_pauses(void **) {
  Pool pool;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Marks marks(64, 4);
    pool.run(4, 64, Marks::mark, &marks);
    marks.check("after a pause");
  }
}

void test_loops_inside_loops_stay_on_their_thread(void **) {
  const ThreadScope threads(4);
  std::atomic<int> sum{0}, most{0};
  parallel_for(8, [&](std::size_t) {
    most = std::max(most.load(), current_threads());
    parallel_for(10, [&](std::size_t) { sum.fetch_add(1); });
  });
  assert_int_equal(sum, 80);
  assert_int_equal(most, 1);
}

void test_child_after_fork(void **) {
  const ThreadScope threads(3);
  std::atomic<int> sum{0};
  const auto add = [&] { parallel_for(100, [&](std::size_t) { sum.fetch_add(1); }); };
  add();
  const pid_t child = fork();
  if (child == 0) {
    add();
    _exit(sum == 200 ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  add();
  assert_int_equal(sum, 200);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_everything_is_done_once),
      cmocka_unit_test(test_callers_at_the_same_time),
      cmocka_unit_test(test_pauses),
      cmocka_unit_test(test_loops_inside_loops_stay_on_their_thread),
      cmocka_unit_test(test_child_after_fork),
  };
  return cmocka_run_group_tests_name("base.pool", tests, nullptr, nullptr);
}
