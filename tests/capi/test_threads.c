/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads with one session or the same tensors at once, with every number of threads inside, and after fork(). */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 8, RUNS = 20, SAMPLES = 8, PIXELS = 64, CLASSES = 10 };

static float pixels[SAMPLES * PIXELS];
static float expected[SAMPLES * CLASSES];
static qmodel *int8;
static qsession *session;

static qtensor *image(int i) {
  qtensor *x = NULL;
  qtensor_create(&x, QTN_FLOAT32, DIMS(1, 1, 8, 8), NULL, pixels + i * PIXELS, PIXELS * sizeof *pixels);
  return x;
}

/* Whether sample i gives the expected bits. Used on threads, where cmocka's assertions do not work. */
static int runs_alike(const qsession *s, int i) {
  qtensor *x = image(i), *y = NULL;
  const qtensor *inputs[] = {x};
  int alike = qsession_run(&y, 1, s, inputs, 1) == QTN_OK &&
              memcmp(qtensor_data(y), expected + i * CLASSES, CLASSES * sizeof *expected) == 0;
  qtensor_free(x);
  qtensor_free(y);
  return alike;
}

static int set_up(void **state) {
  qmodel *m = NULL, *prepared = NULL;
  qconfig *config = NULL;
  uint32_t random = 1;
  int i;
  (void)state;
  for (i = 0; i < SAMPLES * PIXELS; ++i) {
    random = random * 1664525u + 1013904223u;
    pixels[i] = (float)(random >> 8) / 16777216.0f;
  }
  OK(qmodel_load(&m, QTN_DIGITS "/digits.onnx"));
  OK(qconfig_create(&config, "onnx"));
  OK(qmodel_prepare(&prepared, m, config, QTN_PTQ));
  for (i = 0; i < SAMPLES; ++i) {
    qtensor *x = image(i);
    const qtensor *inputs[] = {x};
    OK(qmodel_calibrate(prepared, inputs, 1));
    qtensor_free(x);
  }
  OK(qmodel_convert(&int8, prepared, NULL));
  OK(qlib_set_threads(1));
  OK(qsession_create(&session, int8, NULL));
  for (i = 0; i < SAMPLES; ++i) {
    qtensor *x = image(i), *y = NULL;
    const qtensor *inputs[] = {x};
    OK(qsession_run(&y, 1, session, inputs, 1));
    assert_int_equal(qtensor_nbytes(y), CLASSES * sizeof *expected);
    memcpy(expected + i * CLASSES, qtensor_data(y), CLASSES * sizeof *expected);
    qtensor_free(x);
    qtensor_free(y);
  }
  OK(qlib_set_threads(0));
  qmodel_free(m);
  qmodel_free(prepared);
  qconfig_free(config);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  qsession_free(session);
  qmodel_free(int8);
  return 0;
}

static void *run_many(void *result) {
  int i;
  for (i = 0; i < RUNS; ++i)
    if (!runs_alike(session, i % SAMPLES)) ++*(int *)result;
  return NULL;
}

static void many_threads_share_a_session(void **state) {
  pthread_t threads[THREADS];
  int wrong[THREADS] = {0}, t;
  (void)state;
  OK(qlib_set_threads(2));
  for (t = 0; t < THREADS; ++t) assert_int_equal(pthread_create(&threads[t], NULL, run_many, &wrong[t]), 0);
  for (t = 0; t < THREADS; ++t) {
    assert_int_equal(pthread_join(threads[t], NULL), 0);
    assert_int_equal(wrong[t], 0);
  }
  OK(qlib_set_threads(0));
}

/* Tensors and quantizers that all threads read, and what one of them got. */
typedef struct shared {
  const qtensor *x, *weight, *q;
  const qquantizer *grid;
  const qtensor *integers, *reals, *product;
} shared;

/* Whether qtensor_* and qop_* of const handles give what they gave before. */
static int reads_alike(const shared *s) {
  qtensor *results[5] = {NULL};
  int32_t same[3] = {0};
  char text[64];
  size_t length = 0, i;
  double item = 0;
  int fine = qtensor_quantize(&results[0], s->x, s->grid) == QTN_OK &&
             qtensor_dequantize(&results[1], s->q) == QTN_OK &&
             qop_linear(&results[2], s->x, s->weight, NULL, NULL) == QTN_OK &&
             qtensor_select(&results[3], s->q, 0, 1) == QTN_OK && qtensor_share(&results[4], s->q) == QTN_OK &&
             qtensor_describe(text, sizeof text, &length, s->q) == QTN_OK &&
             qtensor_equal(&same[0], results[0], s->integers) == QTN_OK &&
             qtensor_equal(&same[1], results[1], s->reals) == QTN_OK &&
             qtensor_equal(&same[2], results[2], s->product) == QTN_OK && qtensor_item(&item, s->q) == QTN_ESHAPE &&
             strstr(qerror_message(), "512 elements") != NULL && qquantizer_scales(qtensor_quantizer(s->q))[0] == 0.01;
  for (i = 0; i < COUNT(results); ++i) qtensor_free(results[i]);
  return fine && same[0] && same[1] && same[2];
}

typedef struct reader {
  const shared *shared;
  int wrong;
} reader;

static void *read_many(void *of) {
  reader *r = of;
  int i;
  for (i = 0; i < RUNS; ++i)
    if (!reads_alike(r->shared)) ++r->wrong;
  return NULL;
}

static void many_threads_read_tensors(void **state) {
  qquantizer *grid = affine(QTN_INT8, 0.01, 3);
  qtensor *x = tensor_of(QTN_FLOAT32, NULL, pixels, SAMPLES * PIXELS * sizeof *pixels, DIMS(SAMPLES, PIXELS));
  qtensor *q = NULL, *reals = NULL, *product = NULL;
  pthread_t threads[THREADS];
  reader readers[THREADS];
  int t;
  (void)state;
  OK(qlib_set_threads(2));
  OK(qtensor_quantize(&q, x, grid));
  OK(qtensor_dequantize(&reals, q));
  OK(qop_linear(&product, x, q, NULL, NULL));
  {
    const shared all = {x, q, q, grid, q, reals, product};
    for (t = 0; t < THREADS; ++t) {
      readers[t].shared = &all;
      readers[t].wrong = 0;
      assert_int_equal(pthread_create(&threads[t], NULL, read_many, &readers[t]), 0);
    }
    for (t = 0; t < THREADS; ++t) {
      assert_int_equal(pthread_join(threads[t], NULL), 0);
      assert_int_equal(readers[t].wrong, 0);
    }
  }
  OK(qlib_set_threads(0));
  qquantizer_free(grid);
  qtensor_free(x);
  qtensor_free(q);
  qtensor_free(reals);
  qtensor_free(product);
}

static void threads_inside_change_nothing(void **state) {
  int count, i;
  (void)state;
  for (count = 1; count <= 4; ++count) {
    OK(qlib_set_threads(count));
    for (i = 0; i < SAMPLES; ++i) assert_true(runs_alike(session, i));
  }
  OK(qlib_set_threads(0));
}

static void every_isa_gives_the_same_bits(void **state) {
  static const char *const names[] = {"amx",  "avx512vnni", "avx512", "avxvnni", "avx2",
                                      "i8mm", "dotprod",    "neon",   "scalar"};
  size_t n;
  int i;
  (void)state;
  for (n = 0; n < COUNT(names); ++n) {
    qsession *s = NULL;
    if (qlib_set_isa(names[n]) != QTN_OK) continue; /* not of this CPU */
    OK(qsession_create(&s, int8, NULL));
    for (i = 0; i < SAMPLES; ++i) assert_true(runs_alike(s, i));
    qsession_free(s);
  }
}

static void children_run_too(void **state) {
  int round;
  (void)state;
  OK(qlib_set_threads(2));
  assert_true(runs_alike(session, 0)); /* so that there are threads to be lost */
  for (round = 0; round < 3; ++round) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(runs_alike(session, round) && qlib_set_threads(3) == QTN_OK && runs_alike(session, round + 1) ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(runs_alike(session, round));
  }
  OK(qlib_set_threads(0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_threads_share_a_session),  cmocka_unit_test(many_threads_read_tensors),
      cmocka_unit_test(threads_inside_change_nothing), cmocka_unit_test(children_run_too),
      cmocka_unit_test(every_isa_gives_the_same_bits), /* last: it leaves the lowest set */
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
