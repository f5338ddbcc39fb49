// SPDX-License-Identifier: Apache-2.0
// The pool of prepared runs in every order of its steps, up to two interruptions, and in random ones:
// - no run is with two threads;
// - every run is in the pool, with a thread, or freed: none is lost, none is freed twice;
// - a thread that asks for a key gets a run of that key, or none.
#include <array>
#include <map>
#include <utility>

#include "runtime/plan_cache.hpp"
#include "schedules.hpp"

namespace schedules {
namespace qtn::runtime {
struct Context {};
struct PlanEntry {
  explicit PlanEntry(int *counted) : alive(counted) {}
  ~PlanEntry() { --*alive; }
  int *alive;
};
}  // namespace qtn::runtime
#include "runtime/run_pool.hpp"

namespace {

using qtn::runtime::PlanEntry;
using qtn::runtime::PreparedRun;
using qtn::runtime::PreparedRunPtr;
using qtn::runtime::RunPool;
using ::qtn::test::fail_test;

int alive;

PreparedRunPtr made(::std::uint64_t key) {
  ++alive;
  return ::std::make_unique<PreparedRun>(PreparedRun{key, ::std::make_shared<const PlanEntry>(&alive), nullptr});
}

/// Takes a run, or makes one, works with it and gives it back.
void use(RunPool &pool, ::std::map<const PreparedRun *, int> &users, ::std::uint64_t key) {
  PreparedRunPtr run = pool.take(key, [](const PreparedRun &) { return true; });
  if (!run) run = made(key);
  if (run->key != key) fail_test("key ", run->key, " for ", key);
  if (users[run.get()]++ != 0) fail_test("a run is with two threads");
  Scheduler::now().step();
  --users[run.get()];
  users.erase(run.get());
  pool.give_back(::std::move(run));
}

void three_threads() {
  alive = 0;
  ::std::map<const PreparedRun *, int> users;
  {
    RunPool pool;
    std::thread one([&] { use(pool, users, 2); });
    std::thread two([&] { pool.drop([](const PreparedRun &run) { return run.key == 2; }); });
    use(pool, users, 1);
    one.join();
    two.join();
    if (alive < 0 || alive > 3) fail_test(alive, " runs are left");
  }
  if (alive != 0) fail_test(alive, " runs are lost");
}

void every_order(void **) {
  EachOrder orders;
  ::std::size_t count = 0;
  do {
    Scheduler::run(orders, 2, three_threads);
    ++count;
  } while (orders.next());
  print_message("%zu orders\n", count);
  assert_true(count > 1000);
}

void random_orders(void **) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    RandomOrder order(seed);
    Scheduler::run(order, 1 << 20, three_threads);
  }
}

}  // namespace
}  // namespace schedules

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(schedules::every_order), cmocka_unit_test(schedules::random_orders)};
  return cmocka_run_group_tests_name("runtime.run_pool_schedules", tests, nullptr, nullptr);
}
