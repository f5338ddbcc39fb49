/* SPDX-License-Identifier: Apache-2.0
 *
 * What qlib_set_limits promises: each limit holds to the byte, and a call that is refused has changed nothing. */
#include <unistd.h>

#include "check.h"
#include "tiny_model.h"

static void set(const char *name, int64_t value) {
  qattrs *attrs = NULL;
  OK(qattrs_create(&attrs));
  OK(qattrs_set_int(attrs, name, value));
  OK(qlib_set_limits(attrs));
  qattrs_free(attrs);
}

static int64_t limit(const char *name) {
  int64_t value = -1;
  OK(qlib_limit(&value, name));
  return value;
}

static int reset(void **state) {
  (void)state;
  return qlib_set_limits(NULL) != QTN_OK;
}

/* Something that a limit may refuse. It frees what it makes. */
typedef qstatus (*attempt)(void *with);

/* The least limit at which the attempt succeeds. One below it is refused in words that name the limit, and everything is
 * as before: afterwards the attempt succeeds again. */
static int64_t least(const char *name, attempt try, void *with) {
  const int64_t at_start = limit(name);
  int64_t low = 0, high = 1; /* refused (0 would be the default, which is not tried), granted */
  for (;; low = high, high *= 2) {
    set(name, high);
    const qstatus status = try(with);
    if (status == QTN_OK) break;
    FAILS(QTN_ENOMEM, name, status);
    assert_true(high < INT64_MAX / 4);
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    set(name, middle);
    const qstatus status = try(with);
    if (status != QTN_OK) FAILS(QTN_ENOMEM, name, status);
    *(status == QTN_OK ? &high : &low) = middle;
  }
  assert_true(low > 0); /* a limit of 1 was refused, so this attempt does take something */
  set(name, low);
  FAILS(QTN_ENOMEM, name, try(with));
  set(name, high);
  OK(try(with));
  set(name, 0);
  assert_int_equal(limit(name), at_start);
  return high;
}

/* --- models */

static qmodel *float_model(void) {
  qmodel *m = NULL;
  OK(qmodel_load(&m, QTN_DIGITS "/digits.onnx"));
  return m;
}

static qtensor *image(int64_t batch) {
  qtensor *x = NULL;
  OK(qtensor_create(&x, QTN_FLOAT32, DIMS(batch, 1, 8, 8), NULL, NULL, 0));
  return x;
}

static qmodel *prepared_model(qmode mode) {
  qmodel *m = float_model(), *prepared = NULL;
  qconfig *config = NULL;
  OK(qconfig_create(&config, "onnx"));
  OK(qmodel_prepare(&prepared, m, config, mode));
  qconfig_free(config);
  qmodel_free(m);
  return prepared;
}

static qmodel *int8_model(void) {
  qmodel *prepared = prepared_model(QTN_PTQ), *int8 = NULL;
  qtensor *x = image(1);
  const qtensor *inputs[] = {x};
  OK(qmodel_calibrate(prepared, inputs, 1));
  OK(qmodel_convert(&int8, prepared, NULL));
  qtensor_free(x);
  qmodel_free(prepared);
  return int8;
}

static qsession *session_of(const qmodel *m, const char *engine) {
  qattrs *attrs = NULL;
  qsession *session = NULL;
  OK(qattrs_create(&attrs));
  OK(qattrs_set_string(attrs, "engine", engine));
  OK(qattrs_set_int(attrs, "threads", 1));
  OK(qsession_create(&session, m, attrs));
  qattrs_free(attrs);
  return session;
}

/* --- load */

static qstatus load_file(void *with) {
  qmodel *m = NULL;
  const qstatus status = qmodel_load(&m, with);
  assert_true((m == NULL) == (status != QTN_OK));
  qmodel_free(m);
  return status;
}

static qstatus load_bytes(void *with) {
  const tiny_model *bytes = with;
  qmodel *m = NULL;
  const qstatus status = qmodel_load_bytes(&m, bytes->data, bytes->size);
  assert_true((m == NULL) == (status != QTN_OK));
  qmodel_free(m);
  return status;
}

static void loads(void **state) {
  tiny_model tiny;
  FILE *file = fopen(QTN_DIGITS "/digits.onnx", "rb");
  (void)state;
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  const int64_t size = ftell(file);
  fclose(file);
  /* The file and its weights, which are most of it, at the same time; nothing is held many times over. */
  const int64_t held = least("load_bytes", load_file, QTN_DIGITS "/digits.onnx");
  assert_in_range(held, 3 * size / 2, 4 * size);
  tiny_model_make(&tiny);
  least("load_bytes", load_bytes, &tiny);
}

/* Conv, Relu, GlobalAveragePool, Flatten and Gemm. */
static void nodes(void **state) {
  tiny_model tiny;
  (void)state;
  tiny_model_make(&tiny);
  assert_int_equal(least("nodes", load_bytes, &tiny), 5);
}

/* --- plans */

static qstatus plan(void *with) {
  qsession *session = NULL;
  const qstatus status = qsession_create(&session, with, NULL);
  assert_true((session == NULL) == (status != QTN_OK));
  qsession_free(session);
  return status;
}

static void plans(void **state) {
  qmodel *int8 = int8_model();
  (void)state;
  assert_true(least("plan_bytes", plan, int8) > 1000); /* packed weights */
  qmodel_free(int8);
}

/* A run of other shapes than before makes a plan: of a session that was refused one, the plans that it has still run. */
static void plans_of_runs(void **state) {
  qmodel *m = float_model();
  qsession *session = session_of(m, "native");
  qtensor *one = image(1), *two = image(64), *y = NULL, *again = NULL;
  const qtensor *inputs[] = {one}, *more[] = {two};
  int32_t equal = 0;
  (void)state;
  OK(qsession_run(&y, 1, session, inputs, 1));
  set("tensor_elements", least("tensor_elements", plan, m)); /* enough for batches of one */
  FAILS(QTN_ENOMEM, "tensor_elements", qsession_run(&again, 1, session, more, 1));
  assert_null(again);
  OK(qsession_run(&again, 1, session, inputs, 1));
  OK(qtensor_equal(&equal, y, again));
  assert_true(equal);
  qtensor_free(y);
  OK(qlib_set_limits(NULL));
  qtensor_free(again);
  OK(qsession_run(&again, 1, session, more, 1));
  qtensor_free(again);
  qtensor_free(one);
  qtensor_free(two);
  qsession_free(session);
  qmodel_free(m);
}

/* --- runs */

typedef struct running {
  qsession *session;
  qtensor *x, *wanted;
} running;

static qstatus run(void *with) {
  const running *r = with;
  const qtensor *inputs[] = {r->x};
  qtensor *y = NULL;
  int32_t equal = 0;
  const qstatus status = qsession_run(&y, 1, r->session, inputs, 1);
  assert_true((y == NULL) == (status != QTN_OK));
  if (status == QTN_OK) {
    OK(qtensor_equal(&equal, y, r->wanted));
    assert_true(equal);
  }
  qtensor_free(y);
  return status;
}

/* `scratch`: what an operator that runs by its definition takes beside its operands and results. */
static void check_runs(qmodel *m, const char *engine, int64_t scratch) {
  running r = {session_of(m, engine), image(3), NULL};
  const qtensor *inputs[] = {r.x};
  void *values = NULL;
  size_t i;
  OK(qtensor_data_mut(&values, r.x));
  for (i = 0; i < qtensor_nbytes(r.x) / sizeof(float); ++i) ((float *)values)[i] = (float)(i % 16);
  OK(qsession_run(&r.wanted, 1, r.session, inputs, 1));
  /* Three outputs of ten, and what the layers before them make. */
  const int64_t held = least("run_bytes", run, &r);
  /* At most three values of 32 channels live at a time, and rows that a kernel gathers; together all values take twice
   * as much. */
  assert_true(held < 3 * 3 * 32 * 64 * (int64_t)sizeof(float) + (34 << 10) + scratch);
  assert_true(held > 3 * 10 * (int64_t)sizeof(float) + 3 * 64 + scratch);
  qtensor_free(r.x);
  qtensor_free(r.wanted);
  qsession_free(r.session);
  qmodel_free(m);
}

static void runs_native(void **state) {
  (void)state;
  check_runs(float_model(), "native", 0);
}
static void runs_native_int8(void **state) {
  (void)state;
  check_runs(int8_model(), "native", 0);
}

/* The largest convolution has 64 filters of 3x3 taps over 32 channels of 8x8. Floats: its weights in another order, and the
 * channels with two more rows, once for each column of taps. Integers become doubles: columns, weights and sums. */
enum { TAPS = 32 * 3 * 3, COPIES = 3 * 32 * 10 * 8, COLUMNS = TAPS * 8 * 8, SUMS = 3 * 64 * 8 * 8 };

static void runs_reference(void **state) {
  (void)state;
  check_runs(float_model(), "reference", (64 * TAPS + COPIES) * (int64_t)sizeof(float));
}
static void runs_reference_int8(void **state) {
  (void)state;
  check_runs(int8_model(), "reference", (COLUMNS + 64 * TAPS + SUMS) * (int64_t)sizeof(double));
}

/* --- calibration and training */

static void calibration(void **state) {
  qmodel *prepared = prepared_model(QTN_PTQ), *converted = NULL;
  qtensor *x = image(1);
  const qtensor *inputs[] = {x};
  (void)state;
  set("run_bytes", 1);
  FAILS(QTN_ENOMEM, "run_bytes", qmodel_calibrate(prepared, inputs, 1));
  OK(qlib_set_limits(NULL));
  FAILS(QTN_ESTATE, "", qmodel_convert(&converted, prepared, NULL)); /* no sample was counted */
  OK(qmodel_calibrate(prepared, inputs, 1));
  OK(qmodel_convert(&converted, prepared, NULL));
  qmodel_free(converted);
  qmodel_free(prepared);
  qtensor_free(x);
}

typedef struct training {
  qtrainer *trainer;
  qtensor *x, *labels;
} training;

static qstatus step(void *with) {
  training *t = with;
  const qtensor *inputs[] = {t->x}, *targets[] = {t->labels};
  qtensor *before = NULL, *weight = NULL;
  double loss = 0;
  int32_t equal = 0;
  OK(qtrainer_parameter(&weight, t->trainer, 0));
  OK(qtensor_create(&before, QTN_FLOAT32, qtensor_shape(weight), qtensor_rank(weight), NULL, qtensor_data(weight),
                    qtensor_nbytes(weight)));
  const qstatus status = qtrainer_step(&loss, t->trainer, inputs, 1, targets, 1);
  if (status != QTN_OK) {
    OK(qtensor_equal(&equal, weight, before));
    assert_true(equal);
  }
  qtensor_free(weight);
  qtensor_free(before);
  return status;
}

static void trainers(void **state) {
  qmodel *m = float_model();
  training t = {NULL, image(2), NULL};
  const int64_t labels[] = {1, 2};
  (void)state;
  OK(qtensor_create(&t.labels, QTN_INT64, DIMS(2), NULL, labels, sizeof labels));
  OK(qtrainer_create(&t.trainer, m, NULL));
  set("plan_bytes", 1);
  FAILS(QTN_ENOMEM, "plan_bytes", step(&t));
  set("plan_bytes", 0);
  OK(step(&t));
  qtensor_free(t.x);
  qtensor_free(t.labels);
  qtrainer_free(t.trainer);
  qmodel_free(m);
}

/* --- tensors */

static qstatus make(void *with) {
  qtensor *t = NULL;
  const int64_t shape[] = {*(const int64_t *)with, 3};
  const qstatus status = qtensor_create(&t, QTN_INT8, shape, 2, NULL, NULL, 0);
  assert_true((t == NULL) == (status != QTN_OK));
  qtensor_free(t);
  return status;
}

static qstatus concatenate(void *with) {
  const qtensor *const *inputs = with;
  qtensor *t = NULL;
  const qstatus status = qop_cat(&t, inputs, 2, 0, NULL);
  assert_true((t == NULL) == (status != QTN_OK));
  qtensor_free(t);
  return status;
}

static qstatus load_tensor(void *with) {
  qtensor *t = NULL;
  const qstatus status = qtensor_load(&t, with);
  assert_true((t == NULL) == (status != QTN_OK));
  qtensor_free(t);
  return status;
}

static void elements(void **state) {
  int64_t rows = 7;
  qtensor *a = NULL, *b = NULL;
  char path[] = "/tmp/qtensor-limits-XXXXXX";
  const int file = mkstemp(path);
  (void)state;
  assert_true(file >= 0);
  close(file);
  assert_int_equal(least("tensor_elements", make, &rows), 21);
  OK(qtensor_create(&a, QTN_FLOAT32, DIMS(4, 2), NULL, NULL, 0));
  OK(qtensor_create(&b, QTN_FLOAT32, DIMS(5, 2), NULL, NULL, 0));
  const qtensor *both[] = {a, b};
  assert_int_equal(least("tensor_elements", concatenate, both), 18);
  OK(qtensor_save(b, path));
  assert_int_equal(least("tensor_elements", load_tensor, path), 10);
  unlink(path);
  qtensor_free(a);
  qtensor_free(b);
}

/* Values on the way count as the inputs and outputs do: 8 filters of 8 x 8 for an image of 64. */
static void elements_of_values(void **state) {
  qmodel *m = float_model();
  const int64_t most = least("tensor_elements", plan, m);
  (void)state;
  assert_true(most > 64 && most < 100000);
  qmodel_free(m);
}

/* --- the limits themselves */

static void names_and_values(void **state) {
  qattrs *attrs = NULL;
  int64_t value = 7;
  (void)state;
  FAILS(QTN_EINVAL, "known are load_bytes", qlib_limit(&value, "steps"));
  assert_int_equal(value, 0);
  OK(qattrs_create(&attrs));
  OK(qlib_set_limits(attrs)); /* names none: changes none */
  OK(qattrs_set_int(attrs, "nodes", 10));
  OK(qattrs_set_int(attrs, "load_bytes", INT64_MAX));
  OK(qlib_set_limits(attrs));
  assert_int_equal(limit("nodes"), 10);
  assert_int_equal(limit("load_bytes"), INT64_MAX);
  OK(qattrs_set_int(attrs, "nodes", 20));
  OK(qattrs_set_int(attrs, "run_bytes", -1));
  FAILS(QTN_EINVAL, "run_bytes is -1", qlib_set_limits(attrs));
  assert_int_equal(limit("nodes"), 10);
  OK(qattrs_set_float(attrs, "run_bytes", 1.5));
  FAILS(QTN_EINVAL, "run_bytes", qlib_set_limits(attrs));
  assert_int_equal(limit("nodes"), 10);
  OK(qlib_set_limits(NULL));
  assert_int_equal(limit("nodes"), 1 << 22);
  assert_int_equal(limit("load_bytes"), (int64_t)1 << 40);
  assert_int_equal(limit("plan_bytes"), (int64_t)1 << 40);
  assert_int_equal(limit("tensor_elements"), (int64_t)1 << 40);
  assert_int_equal(limit("run_bytes"), 0);
  qattrs_free(attrs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(loads, reset),
      cmocka_unit_test_teardown(nodes, reset),
      cmocka_unit_test_teardown(plans, reset),
      cmocka_unit_test_teardown(plans_of_runs, reset),
      cmocka_unit_test_teardown(runs_native, reset),
      cmocka_unit_test_teardown(runs_native_int8, reset),
      cmocka_unit_test_teardown(runs_reference, reset),
      cmocka_unit_test_teardown(runs_reference_int8, reset),
      cmocka_unit_test_teardown(calibration, reset),
      cmocka_unit_test_teardown(trainers, reset),
      cmocka_unit_test_teardown(elements, reset),
      cmocka_unit_test_teardown(elements_of_values, reset),
      cmocka_unit_test_teardown(names_and_values, reset),
  };
  return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
