/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory stays flat, whatever is made, freed or fails, and objects may be freed in any order.
 *
 *     test_capi_lifetimes [TIMES]      100000 by default. Under valgrind, which keeps what is freed for a while, fewer
 * are enough, and growth is its own to judge */
#include <unistd.h>

#include "check.h"

enum { MANY = 100000 };

static long times = MANY;

static long resident(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%*s %ld", &pages), 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void stays_flat(long count, void (*work)(void)) {
  long i, before, grown;
  for (i = 0; i < count / 10 + 1; ++i) work();
  before = resident();
  for (i = 0; i < count; ++i) work();
  grown = resident() - before;
  if (times == MANY && grown > 1 << 20) fail_msg("%ld bytes more after %ld times", grown, count);
}

static qtensor *matrix(void) {
  static const float values[] = {-1, 0, 0.5f, 1, 1.5f, 2};
  return FLOATS(values, DIMS(2, 3));
}

static void make_tensors(void) {
  qtensor *x = matrix(), *q = NULL, *row = NULL, *back = NULL;
  qquantizer *grid = affine(QTN_UINT8, 0.5, 3);
  OK(qtensor_quantize(&q, x, grid));
  OK(qtensor_select(&row, q, 0, 1));
  OK(qtensor_dequantize(&back, row));
  qtensor_free(back);
  qtensor_free(row);
  qtensor_free(q);
  qquantizer_free(grid);
  qtensor_free(x);
}

static void fail_in_many_ways(void) {
  qtensor *x = matrix(), *out = NULL;
  qmodel *m = NULL;
  qobserver *o = NULL;
  qconfig *c = NULL;
  FAILS(QTN_ESHAPE, "reshape", qtensor_reshape(&out, x, DIMS(4, 2)));
  FAILS(QTN_EINVAL, "", qtensor_select(&out, x, 0, 2));
  FAILS(QTN_EINVAL, "NULL", qop_relu(&out, NULL));
  FAILS(QTN_EUNSUPPORTED, "NoSuch", qop_run(&out, 1, "NoSuch", (const qtensor *const *)&x, 1, NULL));
  FAILS(QTN_EIO, "nowhere", qmodel_load(&m, "nowhere.onnx"));
  FAILS(QTN_EFORMAT, "", qmodel_load_bytes(&m, "no model", 8));
  FAILS(QTN_EINVAL, "nothing", qobserver_create(&o, "nothing", NULL));
  FAILS(QTN_EUNSUPPORTED, "nobody", qconfig_create(&c, "nobody"));
  qtensor_free(x);
}

/* From a file to a session, each object freed as soon as the next one stands. */
static void quantize_a_model(void) {
  static const float pixels[64] = {0.5f, 1, 0.25f};
  qmodel *m = NULL, *prepared = NULL, *int8 = NULL;
  qconfig *config = NULL;
  qsession *s = NULL;
  qtensor *x = FLOATS(pixels, DIMS(1, 1, 8, 8)), *y = NULL;
  const qtensor *inputs[] = {x};
  OK(qmodel_load(&m, QTN_DIGITS "/digits.onnx"));
  OK(qconfig_create(&config, "onnx"));
  OK(qmodel_prepare(&prepared, m, config, QTN_PTQ));
  qmodel_free(m);
  qconfig_free(config);
  OK(qmodel_calibrate(prepared, inputs, 1));
  OK(qmodel_convert(&int8, prepared, NULL));
  qmodel_free(prepared);
  OK(qsession_create(&s, int8, NULL));
  qmodel_free(int8);
  OK(qsession_run(&y, 1, s, inputs, 1));
  qsession_free(s);
  qtensor_free(x);
  assert_int_equal(qtensor_numel(y), 10);
  qtensor_free(y);
}

static void train_a_model(void) {
  static const float pixels[64] = {0.5f, 1, 0.25f};
  static const int64_t label[] = {3};
  qmodel *m = NULL, *trained = NULL;
  qtrainer *t = NULL;
  qtensor *x = FLOATS(pixels, DIMS(1, 1, 8, 8)), *weights = NULL;
  qtensor *y = tensor_of(QTN_INT64, NULL, label, sizeof label, DIMS(1));
  const qtensor *inputs[] = {x}, *targets[] = {y};
  double loss = 0;
  OK(qmodel_load(&m, QTN_DIGITS "/digits.onnx"));
  OK(qtrainer_create(&t, m, NULL));
  qmodel_free(m);
  OK(qtrainer_step(&loss, t, inputs, 1, targets, 1));
  OK(qtrainer_parameter(&weights, t, 0));
  OK(qtrainer_model(&trained, t));
  qtrainer_free(t);
  assert_true(qtensor_numel(weights) > 0 && loss > 0);
  qtensor_free(weights);
  qmodel_free(trained);
  qtensor_free(y);
  qtensor_free(x);
}

static void tensors(void **state) {
  (void)state;
  stays_flat(times, make_tensors);
}

static void failures(void **state) {
  (void)state;
  stays_flat(times / 10, fail_in_many_ways);
}

static void models(void **state) {
  (void)state;
  stays_flat(times / 500, quantize_a_model);
}

static void trainers(void **state) {
  (void)state;
  stays_flat(times / 500, train_a_model);
}

static void count_frees(void *data, void *ctx) {
  (void)data;
  ++*(int *)ctx;
}

static void views_keep_what_they_show(void **state) {
  static float values[] = {1, 2, 3, 4};
  int frees = 0;
  qtensor *t = NULL, *row = NULL, *second = NULL, *q = NULL;
  qquantizer *grid = affine(QTN_INT8, 0.5, 0);
  double item = 0;
  (void)state;
  OK(qtensor_wrap(&t, QTN_FLOAT32, DIMS(2, 2), NULL, values, sizeof values, count_frees, &frees));
  OK(qtensor_select(&row, t, 0, 1));
  OK(qtensor_share(&second, t));
  OK(qtensor_quantize(&q, t, grid));
  qquantizer_free(grid);
  qtensor_free(t);
  qtensor_free(second);
  assert_int_equal(frees, 0);
  OK(qtensor_select(&second, row, 0, 1));
  OK(qtensor_item(&item, second));
  assert_true(item == 4);
  qtensor_free(row);
  qtensor_free(second);
  assert_int_equal(frees, 1);
  assert_true(qquantizer_scales(qtensor_quantizer(q))[0] == 0.5);
  qtensor_free(q);
}

static void nothing_can_be_freed(void **state) {
  (void)state;
  qtensor_free(NULL);
  qquantizer_free(NULL);
  qattrs_free(NULL);
  qblob_free(NULL);
  qobserver_free(NULL);
  qconfig_free(NULL);
  qmodel_free(NULL);
  qsession_free(NULL);
  qtrainer_free(NULL);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors),  cmocka_unit_test(failures),
      cmocka_unit_test(models),   cmocka_unit_test(views_keep_what_they_show),
      cmocka_unit_test(trainers), cmocka_unit_test(nothing_can_be_freed),
  };
  if (argc > 1) times = strtol(argv[1], NULL, 10);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
