/* SPDX-License-Identifier: Apache-2.0
 *
 * What cases cannot say of sessions with state: whose memory it is, and what other threads see. The network is that of
 * tests/conformance/state_cases.py: moved, state, wrong, best = f(x, h). */
#include <pthread.h>

#include "check.h"

enum { UNITS = 4, OUTPUTS = 4, STEPS = 9, THREADS = 4, RUNS = 2000 };

static qmodel *model;

static int set_up(void **unused) {
  (void)unused;
  OK(qmodel_load(&model, QTN_NETWORKS "/cell.onnx"));
  return 0;
}

static int tear_down(void **unused) {
  (void)unused;
  qmodel_free(model);
  return 0;
}

static qtensor *row(int i) {
  const float values[] = {0.5f + (float)i / 8, 1.0f, -0.25f * (float)i};
  qtensor *x = NULL;
  OK(qtensor_create(&x, QTN_FLOAT32, DIMS(1, 3), NULL, values, sizeof values));
  return x;
}

static qstatus step(qtensor **y, const qsession *s, const qtensor *x, const qtensor *h) {
  const qtensor *inputs[2];
  inputs[0] = x;
  inputs[1] = h;
  return qsession_run(y, OUTPUTS, s, inputs, 2);
}

static void free_all(qtensor **y) {
  int i;
  for (i = 0; i < OUTPUTS; ++i) qtensor_free(y[i]);
}

static qsession *bound(void) {
  qsession *s = NULL;
  OK(qsession_create(&s, model, NULL));
  OK(qsession_bind(s, 1, 1));
  return s;
}

/* The same as passing the state by hand, bit for bit; and two pieces of memory take turns. */
static void state_is_not_copied(void **unused) {
  qsession *s = bound(), *by_hand = NULL;
  const void *seen[STEPS];
  qtensor *h = NULL;
  int i;
  (void)unused;
  OK(qsession_create(&by_hand, model, NULL));
  OK(qtensor_create(&h, QTN_FLOAT32, DIMS(1, UNITS), NULL, NULL, 0));
  for (i = 0; i < STEPS; ++i) {
    qtensor *x = row(i), *y[OUTPUTS], *want[OUTPUTS];
    OK(step(y, s, x, NULL));
    OK(step(want, by_hand, x, h));
    assert_memory_equal(qtensor_data(y[0]), qtensor_data(want[0]), UNITS * sizeof(float));
    assert_memory_equal(qtensor_data(y[1]), qtensor_data(want[1]), UNITS * sizeof(float));
    seen[i] = qtensor_data(y[1]);
    if (i >= 2) assert_ptr_equal(seen[i], seen[i - 2]);
    if (i >= 1) assert_ptr_not_equal(seen[i], seen[i - 1]);
    free_all(y);
    qtensor_free(h);
    h = want[1];
    want[1] = NULL;
    free_all(want);
    qtensor_free(x);
  }
  qtensor_free(h);
  qsession_free(by_hand);
  qsession_free(s);
}

/* A program that keeps what it was given finds it unchanged, also when the session is gone. */
static void kept_states_stay(void **unused) {
  qsession *s = bound();
  qtensor *kept[STEPS];
  float copies[STEPS][UNITS];
  int i;
  (void)unused;
  for (i = 0; i < STEPS; ++i) {
    qtensor *x = row(i), *y[OUTPUTS];
    OK(step(y, s, x, NULL));
    kept[i] = y[1];
    y[1] = NULL;
    memcpy(copies[i], qtensor_data(kept[i]), sizeof copies[i]);
    free_all(y);
    qtensor_free(x);
  }
  qsession_free(s);
  for (i = 0; i < STEPS; ++i) {
    assert_memory_equal(qtensor_data(kept[i]), copies[i], sizeof copies[i]);
    qtensor_free(kept[i]);
  }
}

/* The state may be written into between two runs, as a search that drops hypotheses does. */
static void what_is_written_is_read(void **unused) {
  qsession *s = bound(), *by_hand = NULL;
  qtensor *x = row(1), *y[OUTPUTS], *again[OUTPUTS], *want[OUTPUTS], *ones = NULL;
  void *data = NULL;
  int i;
  (void)unused;
  OK(qsession_create(&by_hand, model, NULL));
  OK(step(y, s, x, NULL));
  OK(qtensor_data_mut(&data, y[1]));
  for (i = 0; i < UNITS; ++i) ((float *)data)[i] = 1.0f;
  OK(qtensor_create(&ones, QTN_FLOAT32, DIMS(1, UNITS), NULL, data, UNITS * sizeof(float)));
  OK(step(again, s, x, NULL));
  OK(step(want, by_hand, x, ones));
  assert_memory_equal(qtensor_data(again[1]), qtensor_data(want[1]), UNITS * sizeof(float));
  free_all(y);
  free_all(again);
  free_all(want);
  qtensor_free(ones);
  qtensor_free(x);
  qsession_free(by_hand);
  qsession_free(s);
}

/* An output that is given as an input of the next run by hand is memory which that run must not write. */
static void a_state_given_back(void **unused) {
  qsession *s = bound(), *by_hand = NULL;
  qtensor *h = NULL, *want_h = NULL;
  int i;
  (void)unused;
  OK(qsession_create(&by_hand, model, NULL));
  OK(qtensor_create(&want_h, QTN_FLOAT32, DIMS(1, UNITS), NULL, NULL, 0));
  for (i = 0; i < STEPS; ++i) {
    qtensor *x = row(i), *y[OUTPUTS], *want[OUTPUTS];
    OK(step(y, s, x, h));
    OK(step(want, by_hand, x, want_h));
    assert_memory_equal(qtensor_data(y[1]), qtensor_data(want[1]), UNITS * sizeof(float));
    qtensor_free(h);
    qtensor_free(want_h);
    h = y[1];
    want_h = want[1];
    y[1] = want[1] = NULL;
    free_all(y);
    free_all(want);
    qtensor_free(x);
  }
  qtensor_free(h);
  qtensor_free(want_h);
  qsession_free(by_hand);
  qsession_free(s);
}

typedef struct worker {
  const qsession *s;
  int done, refused, other;
} worker;

static void *run_many(void *arg) {
  worker *w = arg;
  qtensor *x = NULL;
  int i;
  qtensor_create(&x, QTN_FLOAT32, DIMS(1, 3), NULL, NULL, 0);
  for (i = 0; i < RUNS; ++i) {
    qtensor *y[OUTPUTS] = {NULL};
    const qstatus status = step(y, w->s, x, NULL);
    w->done += status == QTN_OK;
    w->refused += status == QTN_ESTATE;
    w->other += status != QTN_OK && status != QTN_ESTATE;
    free_all(y);
  }
  qtensor_free(x);
  return NULL;
}

/* Runs at the same time are done one by one or refused, and each one that is done is one step. */
static void one_run_at_a_time(void **unused) {
  qsession *s = NULL, *by_hand = bound();
  pthread_t threads[THREADS];
  worker workers[THREADS];
  qtensor *x = NULL, *start = row(0), *y[OUTPUTS], *want[OUTPUTS];
  int i, done = 0;
  (void)unused;
  s = bound();
  OK(step(y, s, start, NULL));
  free_all(y);
  for (i = 0; i < THREADS; ++i) {
    workers[i].s = s;
    workers[i].done = workers[i].refused = workers[i].other = 0;
    assert_int_equal(pthread_create(&threads[i], NULL, run_many, &workers[i]), 0);
  }
  for (i = 0; i < THREADS; ++i) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(workers[i].other, 0);
    assert_int_equal(workers[i].done + workers[i].refused, RUNS);
    done += workers[i].done;
  }
  assert_true(done > 0);
  OK(qtensor_create(&x, QTN_FLOAT32, DIMS(1, 3), NULL, NULL, 0));
  OK(step(want, by_hand, start, NULL));
  for (i = 0; i < done + 1; ++i) {
    free_all(want);
    OK(step(want, by_hand, x, NULL));
  }
  OK(step(y, s, x, NULL));
  assert_memory_equal(qtensor_data(y[1]), qtensor_data(want[1]), UNITS * sizeof(float));
  free_all(y);
  free_all(want);
  qtensor_free(x);
  qtensor_free(start);
  qsession_free(by_hand);
  qsession_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(state_is_not_copied),     cmocka_unit_test(kept_states_stay),
      cmocka_unit_test(what_is_written_is_read), cmocka_unit_test(a_state_given_back),
      cmocka_unit_test(one_run_at_a_time),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
