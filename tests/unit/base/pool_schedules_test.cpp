// SPDX-License-Identifier: Apache-2.0
// The pool of threads in every order of its steps, up to three interruptions, and in thousands of random ones:
// - every piece of a job is done once, before run() returns, and by the task of its own job;
// - no two threads are one lane at the same time;
// - no thread sleeps forever: jobs end, and so do threads when the pool does.
#include <cstdint>
#include <cstring>

#include "schedules.hpp"

namespace schedules {
#include "base/pool.hpp"
// After its declaration:
#include "base/pool.cpp"

namespace {

using qtn::Pool;
using ::qtn::test::fail_test;

struct Job {
  ::std::vector<int> times;
  ::std::vector<int> in_lane;
  bool over = false;

  Job(std::size_t count, std::size_t lanes) : times(count), in_lane(lanes) {}

  static void mark(void *context, std::size_t begin, std::size_t end, std::size_t lane) {
    Job &job = *static_cast<Job *>(context);
    if (job.over) fail_test("a piece is done after its job");
    if (job.in_lane.at(lane)++ != 0) fail_test("two threads are lane ", lane);
    Scheduler::now().step();
    for (std::size_t i = begin; i < end; ++i) ++job.times[i];
    Scheduler::now().step();
    --job.in_lane[lane];
  }

  static void run(Pool &pool, std::size_t lanes, std::size_t count) {
    const auto job = ::std::make_unique<Job>(count, lanes);
    pool.run(lanes, count, mark, job.get());
    job->over = true;
    for (std::size_t i = 0; i < count; ++i)
      if (job->times[i] != 1) fail_test("index ", i, " of ", count, " was done ", job->times[i], " times");
  }
};

void jobs_one_after_the_other() {
  Pool pool;
  for (const std::size_t count : {2, 3}) Job::run(pool, 2, count);
}

void two_callers() {
  Pool pool;
  std::thread other([&] { Job::run(pool, 2, 2); });
  Job::run(pool, 3, 4);
  Job::run(pool, 2, 3);
  other.join();
}

void every_order(void **) {
  EachOrder orders;
  std::size_t count = 0;
  do {
    Scheduler::run(orders, 3, jobs_one_after_the_other);
    ++count;
  } while (orders.next());
  print_message("%zu orders\n", count);
  assert_true(count > 1000);
}

void random_orders(void **) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    RandomOrder order(seed);
    Scheduler::run(order, 1 << 20, seed % 2 ? two_callers : jobs_one_after_the_other);
  }
}

}  // namespace
}  // namespace schedules

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(schedules::every_order), cmocka_unit_test(schedules::random_orders)};
  return cmocka_run_group_tests_name("base.pool_schedules", tests, nullptr, nullptr);
}
