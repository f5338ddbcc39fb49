// SPDX-License-Identifier: Apache-2.0
// How many plans a graph keeps, which of them go, and how much memory waits for the next run.
#include "runtime/plan_cache.hpp"

#include "base/limits.hpp"
#include "graph/budget.hpp"
#include "runtime/support.hpp"

namespace qtn::test {
namespace {

using runtime::PlanCache;
using runtime::PlanEntryPtr;

constexpr std::int64_t kFew = PlanCache::kFewPlans, kMost = PlanCache::kMostPlans;

graph::Graph rows_of(std::int64_t columns) {
  GraphBuilder b;
  return b.input("x", {-1, columns}).node("Relu", "relu", {"x"}, {"y"}).build({"y"});
}

/// Each plan has constants of its own, which follow from its shape.
graph::Graph with_constants() {
  GraphBuilder b;
  b.input("x", {-1}).node("Shape", "shape", {"x"}, {"s"});
  b.node("ConstantOfShape", "ones", {"s"}, {"o"}).node("Add", "add", {"x", "o"}, {"y"});
  return b.build({"y"});
}

/// For a graph that needs no stages.
PlanEntryPtr plan_of(PlanCache &plans, std::span<const Tensor *const> inputs) {
  runtime::Outlook by_types, by_values;
  return plans.plan_for(inputs, by_types, by_values);
}

/// Asks for the plan of inputs of each size, as runs do, and gives the plans.
class Asked {
 public:
  Asked(const graph::Graph &g, bool is_part = false) : graph_(g), plans_(graph_, isa(), {}, {is_part}) {}

  PlanEntryPtr plan(std::int64_t size) {
    Shape shape = *graph_.value(graph_.inputs[0]).shape;
    shape[0] = size;
    const Tensor x(QTN_FLOAT32, shape);
    const Tensor *inputs[] = {&x};
    PlanEntryPtr entry = plan_of(plans_, inputs);
    entry->last_use = ++time_;
    return entry;
  }
  std::vector<PlanEntryPtr> plans(std::int64_t first, std::int64_t last) {
    std::vector<PlanEntryPtr> made;
    for (std::int64_t size = first; size <= last; ++size) made.push_back(plan(size));
    return made;
  }

 private:
  const graph::Graph graph_;
  PlanCache plans_;
  std::int64_t time_ = 0;
};

std::int64_t kept(const std::vector<PlanEntryPtr> &plans) {
  return std::ranges::count_if(plans, [](const PlanEntryPtr &plan) { return !plan->dropped; });
}

void test_the_least_recently_used_goes_first(void **) {
  Asked asked(rows_of(4));
  const std::vector<PlanEntryPtr> first = asked.plans(1, kFew);
  assert_true(asked.plans(1, kFew) == first);
  asked.plan(1);
  asked.plan(kFew + 1);
  for (std::int64_t i = 0; i < kFew; ++i) assert_true(first[static_cast<std::size_t>(i)]->dropped == (i == 1));
}

void test_shapes_that_never_come_again(void **) {
  Asked asked(rows_of(4));
  assert_int_equal(kept(asked.plans(1, 3 * kMost)), kFew);
}

/// More shapes than a decoder meets in a text, in turn: in a session and in a body.
void test_shapes_that_come_again(void **) {
  for (const bool is_part : {false, true}) {
    Asked asked(rows_of(4), is_part);
    std::vector<PlanEntryPtr> last;
    for (int round = 0; round < 3; ++round) last = asked.plans(1, 200);
    assert_true(asked.plans(1, 200) == last);
    assert_int_equal(kept(last), 200);
    for (int round = 0; round < 3; ++round) last = asked.plans(1, kMost + 40);
    assert_int_equal(kept(last), kMost);
  }
}

void test_values_that_come_again(void **) {
  GraphBuilder b;
  b.input("x", {-1}).input("end", {1}, QTN_INT64).constant("begin", ints({0}));
  const graph::Graph g = b.node("Slice", "some", {"x", "begin", "end"}, {"y"}).build({"y"});
  const Tensor x(QTN_FLOAT32, {400});
  PlanCache plans(g, isa());
  std::int64_t time = 0;
  const auto ask = [&](std::int64_t first, std::int64_t last) {
    std::vector<PlanEntryPtr> found;
    for (std::int64_t n = first; n <= last; ++n) {
      const Tensor end = ints({n});
      const Tensor *inputs[] = {&x, &end};
      found.push_back(plan_of(plans, inputs));
      found.back()->last_use = ++time;
    }
    return found;
  };
  assert_int_equal(kept(ask(1, 100)), kFew);
  for (int round = 0; round < 2; ++round) ask(101, 140);
  assert_true(ask(101, 140) == ask(101, 140));
}

void test_plans_that_take_much(void **) {
  constexpr std::int64_t kElements = 1 << 20;
  constexpr std::size_t kBytes = sizeof(float) * kElements, kMostBytes = std::size_t{64} << 20;
  Asked asked(with_constants());
  std::vector<PlanEntryPtr> last;
  for (int round = 0; round < 4; ++round) last = asked.plans(kElements, kElements + 29);
  std::size_t bytes = 0;
  for (const PlanEntryPtr &plan : last) {
    assert_true(plan->bytes >= kBytes);
    if (!plan->dropped) bytes += plan->bytes;
  }
  assert_true(kept(last) > kFew);
  assert_true(bytes <= kMostBytes && bytes + last[0]->bytes > kMostBytes);
}

/// Runs so many shapes in turn. Throws where memory for runs takes more than `most`.
void run_in_turn(const runtime::Session &session, std::int64_t columns, std::int64_t shapes, std::size_t most) {
  const Allowance memory(Limit::plan_bytes, 0, most);
  for (int round = 0; round < 4; ++round)
    for (std::int64_t rows = 512; rows < 512 + shapes; ++rows) {
      const Tensor x = random({rows, columns}, -1, 1, 1);
      const Tensor *inputs[] = {&x};
      assert_true(session.run(inputs)[0].shape() == x.shape());
    }
}

/// A run of these rows takes two megabytes: eight may wait, and beside x there is the one under way.
void test_idle_memory(void **) {
  const graph::Graph g = rows_of(1024);
  run_in_turn(runtime::Session(g, {runtime::Engine::native, 1}), 1024, 40, std::size_t{26} << 20);
}

/// What steps hold counts, so that many plans with long lists are not kept.
void test_lists_of_steps(void **) {
  constexpr std::int64_t kPlaces = 20000;
  std::vector<std::int64_t> places(kPlaces);
  for (std::int64_t i = 0; i < kPlaces; ++i) places[static_cast<std::size_t>(i)] = i * 7 % kPlaces;
  GraphBuilder b;
  b.input("x", {kPlaces, -1}).input("u", {kPlaces, -1});
  b.constant("at", Tensor::from_ints(places).reshaped({kPlaces, 1})).node("ScatterND", "put", {"x", "at", "u"}, {"y"});
  const graph::Graph g = b.build({"y"});
  PlanCache plans(g, isa());
  const Tensor x(QTN_FLOAT32, {kPlaces, 3}), *inputs[] = {&x, &x};
  assert_true(plan_of(plans, inputs)->bytes > 2 * sizeof(std::int64_t) * kPlaces);
}

/// Constants of the whole pay for what its parts hold in a run, whichever part they belong to.
void test_runs_of_parts(void **) {
  const graph::Graph g = rows_of(4);
  const Tensor x(QTN_FLOAT32, {3, 4}), *inputs[] = {&x};
  constexpr std::size_t kWhole = std::size_t{1} << 30;
  assert_true(PlanCache(g, isa()).run_limit(inputs) == graph::run_limit(0, x.nbytes()));
  assert_true(PlanCache(g, isa(), {}, {.is_part = true, .constants = kWhole}).run_limit(inputs) ==
              graph::run_limit(kWhole, x.nbytes()));
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_the_least_recently_used_goes_first),
      cmocka_unit_test(qtn::test::test_shapes_that_never_come_again),
      cmocka_unit_test(qtn::test::test_shapes_that_come_again),
      cmocka_unit_test(qtn::test::test_values_that_come_again),
      cmocka_unit_test(qtn::test::test_plans_that_take_much),
      cmocka_unit_test(qtn::test::test_idle_memory),
      cmocka_unit_test(qtn::test::test_runs_of_parts),
      cmocka_unit_test(qtn::test::test_lists_of_steps),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
