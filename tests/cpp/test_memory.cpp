// SPDX-License-Identifier: Apache-2.0
// Memory that runs out within a call of qtensor.hpp, at each allocation in turn: what was given stays the caller's, nothing
// is lost, and the same call succeeds afterwards.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "../capi/failing_new.h"
#include "qtensor/qtensor.hpp"

// Last: it uses what the others declare.
extern "C" {
#include <cmocka.h>
}

namespace {

/// Calls `f` with its first allocation failing, then its second, until it needs no more; `check` after each failure. What a
/// call holds in the end is not held before the next one.
template <class F, class Check>
void walk(F &&f, Check &&check) {
  long n = 0;
  for (bool missed = true; missed;) {
    assert_true(++n < 10000);
    bool threw = false;
    fail_new(n);
    try {
      f();
    } catch (const std::bad_alloc &) {
      threw = true;
    } catch (const qtn::Error &e) {
      threw = e.status() == QTN_ENOMEM;
    }
    missed = stop_failing_new();
    assert_true(threw == missed);
    if (missed) check();
  }
  assert_true(n > 2);
}

void memory_stays_the_callers_where_it_is_not_wrapped(void **) {
  float data[2] = {1, 2};
  int deleted = 0;
  const auto deleter = [](void *, void *ctx) { ++*static_cast<int *>(ctx); };
  walk([&] { (void)qtn::Tensor::wrap(QTN_FLOAT32, {2}, data, sizeof(data), deleter, &deleted); },
       [&] { assert_int_equal(deleted, 0); });
  assert_int_equal(deleted, 1);
}

void what_is_lent_by_dlpack_stays_lent(void **) {
  const qtn::Tensor x = qtn::Tensor::floats({2}, {1, 2});
  DLManagedTensor *const lent = x.to_dlpack();
  walk([&] { assert_true(qtn::Tensor::from_dlpack(lent).as<float>()[1] == 2); }, [] {});  // the next call takes it
}

void no_output_is_lost(void **) {
  const qtn::Tensors x{qtn::Tensor::floats({4}, {1, 2, 3, 4})};
  const qtn::Attrs attrs = qtn::Attrs().set_int("num_outputs", 2);
  (void)qtn::Op::run("Split", x, attrs, 2);  // what is made once is there
  const long before = live_allocations();
  walk([&] { assert_true(qtn::Op::run("Split", x, attrs, 2)[1].as<float>()[0] == 3); },
       [&] { assert_true(live_allocations() <= before + 2); });  // the message of an error stays, until the next one
}

/// A run whose outputs found no room does not move the state on.
void state_stays_where_it_was(void **) {
  const qtn::Model model = qtn::Model::load(std::string(QTN_TRANSFORMERS) + "/letters_step.onnx");
  qtn::Session session = qtn::Session::create(model);
  for (size_t i = 1; i < model.input_count(); ++i) session.bind(i, i);
  qtn::Tensors inputs(model.input_count());
  inputs[0] = qtn::Tensor::int64s({1, 1}, {5});
  const qtn::Tensor first = session.run(inputs)[0], second = session.run(inputs)[0];
  assert_false(first.equal(second));
  walk(
      [&] {
        const long left = pause_failing_new();
        session.reset();
        go_on_failing_new(left);
        (void)session.run(inputs);
      },
      [&] {
        assert_true(session.run(inputs)[0].equal(first));
        assert_true(session.run(inputs)[0].equal(second));
      });
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(memory_stays_the_callers_where_it_is_not_wrapped),
      cmocka_unit_test(what_is_lent_by_dlpack_stays_lent),
      cmocka_unit_test(no_output_is_lost),
      cmocka_unit_test(state_stays_where_it_was),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
