/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process may do to a library: fork while threads run it, cancel a thread inside of a callback, or have little
 * memory for a BLAS. And models from memory, which have no folder for external data. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { CHILDREN = 200, RUNNERS = 3, SECONDS = 20 };

static qmodel *load(void) {
  qmodel *m = NULL;
  return qmodel_load(&m, QTN_DIGITS "/digits.onnx") == QTN_OK ? m : NULL;
}

static qtensor *image(void) {
  qtensor *x = NULL;
  const int64_t shape[] = {1, 1, 8, 8};
  return qtensor_create(&x, QTN_FLOAT32, shape, 4, NULL, NULL, 0) == QTN_OK ? x : NULL;
}

/* A session of its own, which is planned and packed, and runs. */
static int run_once(const qmodel *m) {
  qtensor *x = image(), *y = NULL;
  const qtensor *inputs[] = {x};
  qsession *session = NULL;
  int done = x && qsession_create(&session, m, NULL) == QTN_OK && qsession_run(&y, 1, session, inputs, 1) == QTN_OK;
  qtensor_free(x);
  qtensor_free(y);
  qsession_free(session);
  return done;
}

/* What `body` returns in a process of its own, -1 where that does not end by itself. */
static int in_child(int (*body)(void *), void *argument) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    alarm(SECONDS);
    _exit(body(argument));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static qmodel *int8_model(void) {
  qmodel *m = load(), *prepared = NULL, *int8 = NULL;
  qconfig *config = NULL;
  qtensor *x = image();
  const qtensor *inputs[] = {x};
  OK(qconfig_create(&config, "onnx"));
  OK(qmodel_prepare(&prepared, m, config, QTN_PTQ));
  OK(qmodel_calibrate(prepared, inputs, 1));
  OK(qmodel_convert(&int8, prepared, NULL));
  qtensor_free(x);
  qconfig_free(config);
  qmodel_free(prepared);
  qmodel_free(m);
  return int8;
}

static atomic_int stop;
static qsession *shared;

/* Runs of batches that are new each time, so that the session is always about to plan and to pack. */
static void *keep_running(void *argument) {
  int64_t batch = 1 + (int64_t)(intptr_t)argument;
  while (!atomic_load(&stop)) {
    const int64_t shape[] = {batch, 1, 8, 8};
    qtensor *x = NULL, *y = NULL;
    const qtensor *inputs[1];
    batch = batch % 40 + 1;
    if (qtensor_create(&x, QTN_FLOAT32, shape, 4, NULL, NULL, 0) != QTN_OK) break;
    inputs[0] = x;
    (void)qsession_run(&y, 1, shared, inputs, 1);
    qtensor_free(x);
    qtensor_free(y);
  }
  return NULL;
}

static int run_shared(void *argument) {
  const int64_t shape[] = {50, 1, 8, 8};
  qtensor *x = NULL, *y = NULL;
  const qtensor *inputs[1];
  (void)argument;
  if (qtensor_create(&x, QTN_FLOAT32, shape, 4, NULL, NULL, 0) != QTN_OK) return 1;
  inputs[0] = x;
  return qsession_run(&y, 1, shared, inputs, 1) == QTN_OK ? 0 : 2;
}

static void children_of_running_threads_run(void **state) {
  pthread_t threads[RUNNERS];
  qmodel *m;
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  print_message("skipped: a child waits for locks that the sanitizer's allocator held in other threads\n");
  skip();
#endif
  m = int8_model();
  OK(qsession_create(&shared, m, NULL));
  atomic_store(&stop, 0);
  for (int i = 0; i < RUNNERS; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, keep_running, (void *)(intptr_t)(10 * i)), 0);
  for (int i = 0; i < CHILDREN; ++i) {
    const int result = in_child(run_shared, NULL);
    if (result != 0) {
      atomic_store(&stop, 1);
      print_error("child %d of %d: %d\n", i, CHILDREN, result);
    }
    assert_int_equal(result, 0);
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < RUNNERS; ++i) pthread_join(threads[i], NULL);
  qsession_free(shared);
  qmodel_free(m);
}

static qstatus cancelled_sample(qtensor **inputs, size_t count, size_t index, void *ctx) {
  (void)inputs, (void)count, (void)index, (void)ctx;
  pthread_cancel(pthread_self());
  pthread_testcancel();
  return QTN_OK;
}

static void *quantize_cancelled(void *m) {
  qmodel *out = NULL;
  qconfig *config = NULL;
  if (qconfig_create(&config, "onnx") != QTN_OK) return NULL;
  (void)qmodel_quantize(&out, NULL, m, config, cancelled_sample, 1, NULL, NULL, NULL);
  return NULL;
}

static int cancel_and_go_on(void *m) {
  pthread_t thread;
  void *result = NULL;
  if (pthread_create(&thread, NULL, quantize_cancelled, m) != 0) return 1;
  if (pthread_join(thread, &result) != 0 || result != PTHREAD_CANCELED) return 2;
  return run_once(m) ? 0 : 3;
}

static void a_thread_is_cancelled_in_a_callback(void **state) {
  qmodel *m = load();
  (void)state;
  if (SANITIZED) skip(); /* which take the configuration that is lost with the thread for a leak */
  assert_int_equal(in_child(cancel_and_go_on, m), 0);
  qmodel_free(m);
}

/* A product with that many more megabytes of addresses than there are in use: 0, or why not, but an end. */
static int multiply_within(void *megabytes) {
  enum { SIDE = 256 };
  const int64_t shape[] = {SIDE, SIDE};
  qtensor *a = NULL, *y = NULL;
  const qtensor *inputs[2];
  struct rlimit limit;
  unsigned long pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  if (!statm || fscanf(statm, "%lu", &pages) != 1) return 10;
  fclose(statm);
  if (qtensor_create(&a, QTN_FLOAT32, shape, 2, NULL, NULL, 0) != QTN_OK) return 11;
  limit.rlim_cur = limit.rlim_max =
      (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t) * (int *)megabytes * (1 << 20);
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 12;
  inputs[0] = inputs[1] = a;
  for (int i = 0; i < 3; ++i) {
    const qstatus status = qop_run(&y, 1, "MatMul", inputs, 2, NULL);
    if (status == QTN_ENOMEM || status == QTN_EUNSUPPORTED) return 1;
    if (status != QTN_OK) return 13;
    qtensor_free(y);
  }
  return 0;
}

static void little_memory_for_a_blas(void **state) {
  (void)state;
  if (SANITIZED) skip(); /* which take terabytes of addresses */
  for (int megabytes = 10; megabytes <= 400; megabytes += 30) {
    const int result = in_child(multiply_within, &megabytes);
    if (result != 0 && result != 1) print_error("with %d MB: %d\n", megabytes, result);
    assert_in_range(result, 0, 1);
    if (megabytes >= 370) assert_int_equal(result, 0);
  }
}

static void models_from_memory_have_no_folder(void **state) {
  char bytes[4096], here[4096];
  qmodel *m = NULL;
  size_t count;
  FILE *file = fopen(QTN_DIGITS "/../../tests/golden/hostile/external.onnx", "rb");
  (void)state;
  assert_non_null(file);
  count = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(QTN_DIGITS "/../../tests/golden/hostile"), 0); /* where its data is */
  OK(qmodel_load(&m, "external.onnx"));
  qmodel_free(m);
  FAILS(QTN_EUNSUPPORTED, "was not loaded from a file", qmodel_load_bytes(&m, bytes, count));
  assert_null(m);
  assert_int_equal(chdir(here), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(little_memory_for_a_blas), /* before another test has loaded it */
                                     cmocka_unit_test(a_thread_is_cancelled_in_a_callback),
                                     cmocka_unit_test(children_of_running_threads_run),
                                     cmocka_unit_test(models_from_memory_have_no_folder)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
