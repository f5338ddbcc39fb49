// SPDX-License-Identifier: Apache-2.0
// The pool of prepared runs on its own, and sessions that see more shapes and threads than they keep memory for.
#include "runtime/run_pool.hpp"

#include <thread>

#include "runtime/support.hpp"

namespace qtn::test {
namespace {

using runtime::PreparedRun;
using runtime::PreparedRunPtr;

constexpr auto kAny = [](const PreparedRun &) { return true; };

PreparedRunPtr run_of(std::uint64_t key) {
  return std::make_unique<PreparedRun>(PreparedRun{key, std::make_shared<runtime::PlanEntry>(), nullptr});
}

void test_takes_what_fits(void **) {
  runtime::RunPool pool;
  assert_null(pool.take(1, kAny).get());
  PreparedRunPtr one = run_of(1), other = run_of(1), two = run_of(2);
  const PreparedRun *const wanted = one.get(), *const second = two.get();
  pool.give_back(std::move(one));
  pool.give_back(std::move(other));
  pool.give_back(std::move(two));
  assert_null(pool.take(3, kAny).get());
  assert_null(pool.take(2, [](const PreparedRun &) { return false; }).get());
  PreparedRunPtr taken = pool.take(1, [&](const PreparedRun &run) { return &run == wanted; });
  assert_ptr_equal(taken.get(), wanted);
  assert_null(pool.take(1, [&](const PreparedRun &run) { return &run == wanted; }).get());
  assert_ptr_equal(pool.take(2, kAny).get(), second);
}

void test_frees_what_has_no_place(void **) {
  runtime::RunPool pool;
  std::weak_ptr<const runtime::PlanEntry> oldest;
  for (std::uint64_t key = 0; key < 100; ++key) {
    PreparedRunPtr run = run_of(key);
    if (key == 0) oldest = run->entry;
    pool.give_back(std::move(run));
    assert_false(key < 50 && oldest.expired());
  }
  assert_true(oldest.expired());
  std::size_t kept = 0;
  for (std::uint64_t key = 0; key < 100; ++key) kept += pool.take(key, kAny) != nullptr;
  assert_true(kept >= 50);
  pool.give_back(run_of(1));
  pool.drop(kAny);
  assert_null(pool.take(1, kAny).get());
}

/// No run is ever with two threads, and none is lost.
void test_threads(void **) {
  runtime::RunPool pool;
  std::array<std::atomic<int>, 4> users{};
  std::atomic<int> shared{0};
  for (std::uint64_t key = 0; key < users.size(); ++key) pool.give_back(run_of(key));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 20000; ++i) {
        const std::size_t key = i % 3 ? t : i % users.size();
        PreparedRunPtr run = pool.take(key, kAny);
        if (!run) continue;
        shared += users[key].fetch_add(1) != 0;
        --users[key];
        pool.give_back(std::move(run));
      }
    });
  for (std::thread &thread : threads) thread.join();
  assert_int_equal(shared.load(), 0);
  for (std::uint64_t key = 0; key < users.size(); ++key) assert_non_null(pool.take(key, kAny).get());
}

void test_many_shapes_on_many_threads(void **) {
  constexpr std::int64_t kBatches = 12;
  GraphBuilder b;
  b.input("x", {1, 4, 6, 6});
  add_conv(b, "a", "x", "y", {8, 4, 3, 3}, {});
  const graph::Graph g = any_batch(quantized(b.build({"y"})));
  const runtime::Session session(g, {runtime::Engine::native, 1});
  const Tensor x = random({kBatches, 4, 6, 6}, -1, 1, 3);
  const Tensor *all[] = {&x};
  const Tensor want = session.run(all)[0];
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 60; ++i) {
        const std::int64_t batch = (i + t * 3) % kBatches + 1;
        const Tensor part = x.slice(0, 0, batch, 1);
        const Tensor *inputs[] = {&part};
        wrong += !equal(session.run(inputs)[0], want.slice(0, 0, batch, 1).clone());
      }
    });
  for (std::thread &thread : threads) thread.join();
  assert_int_equal(wrong.load(), 0);
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_takes_what_fits),
      cmocka_unit_test(qtn::test::test_frees_what_has_no_place),
      cmocka_unit_test(qtn::test::test_threads),
      cmocka_unit_test(qtn::test::test_many_shapes_on_many_threads),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
