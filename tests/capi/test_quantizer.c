/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantizers and observers: parameters, ranges to scales, merging, saving. */
#include <float.h>
#include <math.h>

#include "check.h"

static qattrs *attrs_of(const char *key, const char *text) {
  qattrs *a = NULL;
  OK(qattrs_create(&a));
  if (key) OK(qattrs_set_string(a, key, text));
  return a;
}

static void check_grid(const qquantizer *q, double scale, int64_t zero_point) {
  assert_float_equal(qquantizer_scales(q)[0], scale, 1e-6);
  assert_int_equal(qquantizer_zero_points(q)[0], zero_point);
}

static void parameters(void **state) {
  const double scales[] = {0.5, 0.25, 0.125};
  const int64_t zeros[] = {-3, 0, 4};
  qquantizer *q = NULL;
  (void)state;
  OK(qquantizer_create(&q, QTN_INT8, QTN_PER_CHANNEL_AFFINE, 1, scales, zeros, 3, NULL));
  assert_int_equal(qquantizer_dtype(q), QTN_INT8);
  assert_int_equal(qquantizer_scheme(q), QTN_PER_CHANNEL_AFFINE);
  assert_int_equal(qquantizer_axis(q), 1);
  assert_int_equal(qquantizer_count(q), 3);
  assert_memory_equal(qquantizer_scales(q), scales, sizeof scales);
  assert_memory_equal(qquantizer_zero_points(q), zeros, sizeof zeros);
  qquantizer_free(q);
  OK(qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_SYMMETRIC, 5, scales, NULL, 1, NULL));
  check_grid(q, 0.5, 128);
  assert_int_equal(qquantizer_axis(q), 0);
  qquantizer_free(q);
  OK(qquantizer_create(&q, QTN_INT8, QTN_PER_TENSOR_SYMMETRIC, 0, scales, NULL, 1, NULL));
  check_grid(q, 0.5, 0);
  qquantizer_free(q);
}

/* The middle of what the integers are, which need not be the whole type. */
static void default_zeros_lie_in_the_range(void **state) {
  const struct {
    const char *numerics;
    int64_t lo, hi, zero;
  } grids[] = {
      {"fbgemm", 0, 15, 7}, {"onnx", 0, 15, 8}, {"fbgemm", 100, 120, 110}, {"tflite", 0, 15, 7}, {"nvidia", 0, 15, 0}};
  const double scale = 0.5, lo = -1, hi = 1;
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(grids); ++i) {
    qattrs *a = attrs_of("numerics", grids[i].numerics);
    qquantizer *q = NULL;
    OK(qattrs_set_int(a, "quant_min", grids[i].lo));
    OK(qattrs_set_int(a, "quant_max", grids[i].hi));
    OK(qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_SYMMETRIC, 0, &scale, NULL, 1, a));
    check_grid(q, 0.5, grids[i].zero);
    qquantizer_free(q);
    if (i < 3) {
      OK(qquantizer_choose(&q, QTN_UINT8, QTN_PER_TENSOR_SYMMETRIC, 0, &lo, &hi, 1, a));
      assert_int_equal(qquantizer_zero_points(q)[0], grids[i].zero);
      qquantizer_free(q);
    }
    qattrs_free(a);
  }
}

/* Grids without integers below zero take values without negatives from every observer. */
static void observe_for_unsigned_grids(void **state) {
  const char *kinds[] = {"minmax",     "max",     "moving_average",    "mse",
                         "percentile", "entropy", "nvidia_percentile", "nvidia_mse"};
  float values[512];
  qtensor *x, *below;
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(values); ++i) values[i] = (float)i / 128;
  x = FLOATS(values, DIMS(512));
  values[0] = -1;
  below = FLOATS(values, DIMS(512));
  for (i = 0; i < COUNT(kinds); ++i) {
    qattrs *a = attrs_of("numerics", "nvidia");
    qobserver *o = NULL;
    qquantizer *q = NULL;
    OK(qattrs_set_string(a, "scheme", "per_tensor_symmetric"));
    OK(qobserver_create(&o, kinds[i], a));
    OK(qobserver_observe(o, x));
    OK(qobserver_quantizer(&q, o));
    assert_int_equal(qquantizer_zero_points(q)[0], 0);
    assert_true(qquantizer_scales(q)[0] > 3.5 / 255 && qquantizer_scales(q)[0] < 4.1 / 255);
    qquantizer_free(q);
    if (strcmp(kinds[i], "mse") == 0) {
      OK(qobserver_observe(o, below));
      FAILS(QTN_EINVAL, "negative values", qobserver_quantizer(&q, o));
    }
    qobserver_free(o);
    qattrs_free(a);
  }
  qtensor_free(x);
  qtensor_free(below);
}

/* What no memory holds is refused with the count; what is empty may be NULL. */
static void counts(void **state) {
  const double scales[] = {1, 1};
  const int64_t zeros[] = {0, 0};
  const qtensor *none = NULL;
  qattrs *a = attrs_of(NULL, NULL);
  qquantizer *q = NULL;
  qtensor *t = NULL;
  qmodel *m = NULL;
  qobserver *o = NULL;
  (void)state;
  FAILS(QTN_EINVAL, "18446744073709551615",
        qquantizer_create(&q, QTN_UINT8, QTN_PER_CHANNEL_AFFINE, 0, scales, zeros, SIZE_MAX, NULL));
  FAILS(QTN_EINVAL, "2305843009213693952", qattrs_set_ints(a, "axes", zeros, (size_t)1 << 61));
  FAILS(QTN_EINVAL, "2305843009213693952", qattrs_set_floats(a, "scales", scales, (size_t)1 << 61));
  FAILS(QTN_EINVAL, "18446744073709551615", qop_run(&t, 1, "Concat", &none, SIZE_MAX, NULL));
  FAILS(QTN_EINVAL, "18446744073709551615", qop_cat(&t, &none, SIZE_MAX, 0, NULL));
  assert_int_equal(qattrs_count(a), 0);
  qattrs_free(a);

  OK(qtensor_wrap(&t, QTN_FLOAT32, DIMS(2, 0), NULL, NULL, 0, NULL, NULL));
  assert_int_equal(qtensor_numel(t), 0);
  qtensor_free(t);
  FAILS(QTN_EINVAL, "data is NULL", qtensor_wrap(&t, QTN_FLOAT32, DIMS(2), NULL, NULL, 0, NULL, NULL));
  FAILS(QTN_EINVAL, "data is NULL", qtensor_wrap(&t, QTN_FLOAT32, DIMS(2), NULL, NULL, 8, NULL, NULL));
  FAILS(QTN_EINVAL, "data is NULL", qmodel_load_bytes(&m, NULL, 0));
  FAILS(QTN_EINVAL, "data is NULL", qobserver_load(&o, NULL, 0));
}

static void bad_parameters(void **state) {
  const double bad[] = {0.0, -1.0, NAN, INFINITY, 1e-60};
  const double good[] = {1, 1};
  const int64_t zero = 256, negative = -1;
  qattrs *unknown = attrs_of("colour", "red"), *numerics = attrs_of("numerics", "qnnpark"), *kind = NULL, *eps = NULL;
  qquantizer *q = NULL;
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(bad); ++i)
    FAILS(QTN_EINVAL, "scale", qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, bad + i, NULL, 1, NULL));
  FAILS(QTN_EINVAL, "256", qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, good, &zero, 1, NULL));
  FAILS(QTN_EINVAL, "-1", qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, good, &negative, 1, NULL));
  FAILS(QTN_EINVAL, "2", qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, good, NULL, 2, NULL));
  FAILS(QTN_EINVAL, "", qquantizer_create(&q, QTN_UINT8, QTN_PER_CHANNEL_AFFINE, 0, NULL, NULL, 0, NULL));
  OK(qattrs_create(&eps));
  OK(qattrs_set_float(eps, "eps", -1));
  FAILS(QTN_EINVAL, "eps -1 is not a positive",
        qquantizer_choose(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, &bad[0], good, 1, eps));
  qattrs_free(eps);
  FAILS(QTN_EINVAL, "axis is -9", qquantizer_create(&q, QTN_UINT8, QTN_PER_CHANNEL_AFFINE, -9, good, NULL, 2, NULL));
  FAILS(QTN_EINVAL, "numerics", qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, good, NULL, 1, unknown));
  FAILS(QTN_EINVAL, "qnnpark", qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, good, NULL, 1, numerics));
  OK(qattrs_create(&kind));
  OK(qattrs_set_int(kind, "numerics", 1));
  FAILS(QTN_EINVAL, "numerics", qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, good, NULL, 1, kind));
  qattrs_free(unknown);
  qattrs_free(numerics);
  qattrs_free(kind);
}

typedef struct chosen {
  qdtype dtype;
  qscheme scheme;
  const char *numerics;
  int reduce, narrow;
  double min, max, scale;
  int64_t zero_point;
} chosen;

static void choose_from_ranges(void **state) {
  static const chosen cases[] = {
      /* torch.ao's observers, semantics 2.3 */
      {QTN_UINT8, QTN_PER_TENSOR_AFFINE, "fbgemm", 0, 0, 1, 8, 0.0313725, 0},
      {QTN_UINT8, QTN_PER_TENSOR_SYMMETRIC, "fbgemm", 0, 0, 1, 8, 0.062745, 128},
      {QTN_INT8, QTN_PER_TENSOR_AFFINE, "fbgemm", 0, 0, 1, 8, 0.0313725, -128},
      {QTN_INT8, QTN_PER_TENSOR_AFFINE, "fbgemm", 1, 0, 1, 8, 0.0313725 * 255 / 127, -64},
      {QTN_INT8, QTN_PER_TENSOR_SYMMETRIC, "fbgemm", 0, 0, 1, 8, 0.062745, 0},
      {QTN_INT8, QTN_PER_TENSOR_SYMMETRIC, "fbgemm", 0, 0, -1, 1, 0.007843137718737125, 0},
      {QTN_UINT8, QTN_PER_TENSOR_AFFINE, "fbgemm", 0, 0, 0, 0, FLT_EPSILON, 0},
      /* ONNX Runtime's tool, semantics 2.12 */
      {QTN_INT8, QTN_PER_TENSOR_SYMMETRIC, "onnx", 0, 1, -1, 0.5, 1.0 / 127, 0},
      {QTN_UINT8, QTN_PER_TENSOR_AFFINE, "onnx", 0, 0, -1, 3, 4.0 / 255, 64},
      {QTN_UINT8, QTN_PER_TENSOR_AFFINE, "onnx", 0, 0, 0, 0, 1.0, 0},
  };
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(cases); ++i) {
    const chosen *c = &cases[i];
    qattrs *a = attrs_of("numerics", c->numerics);
    qquantizer *q = NULL;
    OK(qattrs_set_int(a, "reduce_range", c->reduce));
    OK(qattrs_set_int(a, "narrow_range", c->narrow));
    OK(qquantizer_choose(&q, c->dtype, c->scheme, 0, &c->min, &c->max, 1, a));
    check_grid(q, c->scale, c->zero_point);
    qquantizer_free(q);
    qattrs_free(a);
  }
}

static void choose_per_channel(void **state) {
  const double mins[] = {1, -4}, maxs[] = {6, 8};
  qquantizer *q = NULL;
  (void)state;
  OK(qquantizer_choose(&q, QTN_INT8, QTN_PER_CHANNEL_AFFINE, 0, mins, maxs, 2, NULL));
  assert_float_equal(qquantizer_scales(q)[0], .02352941, 1e-7);
  assert_float_equal(qquantizer_scales(q)[1], .04705882, 1e-7);
  assert_int_equal(qquantizer_zero_points(q)[0], -128);
  assert_int_equal(qquantizer_zero_points(q)[1], -43);
  qquantizer_free(q);
  FAILS(QTN_EINVAL, "", qquantizer_choose(&q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, maxs, mins, 1, NULL));
  FAILS(QTN_EINVAL, "[nan, 6]",
        qquantizer_choose(&q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, &(double){NAN}, maxs, 1, NULL));
  FAILS(QTN_EINVAL, "[nan, 6]",
        qquantizer_choose(&q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, &(double){-NAN}, maxs, 1, NULL));
}

static const float kX[] = {1, 2, 2, 3, 4, 5, 6}, kY[] = {4, 5, 5, 6, 7, 8};

static void observe_minmax(void **state) {
  qobserver *o = NULL, *half = NULL, *loaded = NULL;
  qquantizer *q = NULL;
  qblob *b = NULL;
  qtensor *x = FLOATS(kX, DIMS(7)), *y = FLOATS(kY, DIMS(6));
  (void)state;
  OK(qobserver_create(&o, "minmax", NULL));
  FAILS(QTN_ESTATE, "", qobserver_quantizer(&q, o));
  OK(qobserver_observe(o, x));
  OK(qobserver_create(&half, "minmax", NULL));
  OK(qobserver_observe(half, y));
  OK(qobserver_save(&b, half)); /* as if another process had seen the second part */
  OK(qobserver_load(&loaded, qblob_data(b), qblob_size(b)));
  OK(qobserver_merge(o, loaded));
  OK(qobserver_quantizer(&q, o));
  check_grid(q, 0.0313725, 0);
  qquantizer_free(q);
  q = NULL;
  qobserver_free(loaded);
  FAILS(QTN_EFORMAT, "", qobserver_load(&loaded, qblob_data(b), qblob_size(b) - 1));
  FAILS(QTN_EFORMAT, "", qobserver_load(&loaded, "nonsense", 8));
  FAILS(QTN_EFORMAT, "", qobserver_load(&loaded, "", 0));
  qblob_free(b);
  qobserver_free(o);
  qobserver_free(half);
  qtensor_free(x);
  qtensor_free(y);
}

static void observe_moving_average(void **state) {
  const float first[] = {0, 2, 2, 3, 4, 5, 6}, second[] = {2, 5, 5, 6, 7, 10};
  qattrs *a = NULL;
  qobserver *o = NULL;
  qquantizer *q = NULL;
  qtensor *x = FLOATS(first, DIMS(7)), *y = FLOATS(second, DIMS(6));
  (void)state;
  OK(qattrs_create(&a));
  OK(qattrs_set_float(a, "averaging_constant", 0.5));
  OK(qobserver_create(&o, "moving_average", a));
  OK(qobserver_observe(o, x));
  OK(qobserver_observe(o, y));
  OK(qobserver_quantizer(&q, o));
  check_grid(q, 0.0313725, 0); /* min 1, max 8 */
  qquantizer_free(q);
  qobserver_free(o);
  qattrs_free(a);
  qtensor_free(x);
  qtensor_free(y);
}

static void observe_other_kinds(void **state) {
  static const char *const kinds[] = {"mse", "histogram"};
  qtensor *x = FLOATS(kX, DIMS(7));
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(kinds); ++i) {
    qobserver *o = NULL;
    qquantizer *q = NULL;
    OK(qobserver_create(&o, kinds[i], NULL));
    OK(qobserver_observe(o, x));
    OK(qobserver_quantizer(&q, o));
    assert_in_range((int)(qquantizer_scales(q)[0] * 1e6), 1, 23530); /* not larger than the range seen: 6 / 255 */
    qquantizer_free(q);
    qobserver_free(o);
  }
  qtensor_free(x);
}

static void observe_badly(void **state) {
  const float bad[] = {1, NAN}, infinite[] = {INFINITY, 1};
  qobserver *o = NULL, *other = NULL;
  qquantizer *q = NULL;
  qattrs *a = attrs_of("colour", "red");
  qtensor *nan = FLOATS(bad, DIMS(2)), *inf = FLOATS(infinite, DIMS(2)), *ints = NULL, *empty = NULL;
  (void)state;
  FAILS(QTN_EINVAL, "minmax", qobserver_create(&o, "maxmin", NULL));
  FAILS(QTN_EINVAL, "averaging_constant", qobserver_create(&o, "minmax", a));
  OK(qobserver_create(&o, "minmax", NULL));
  OK(qobserver_create(&other, "moving_average", NULL));
  FAILS(QTN_EINVAL, "nan", qobserver_observe(o, nan));
  FAILS(QTN_EINVAL, "inf", qobserver_observe(o, inf));
  OK(qtensor_create(&ints, QTN_INT64, DIMS(2), NULL, NULL, 0));
  FAILS(QTN_EDTYPE, "int64", qobserver_observe(o, ints));
  OK(qtensor_create(&empty, QTN_FLOAT32, DIMS(0), NULL, NULL, 0));
  OK(qobserver_observe(o, empty));
  FAILS(QTN_ESTATE, "", qobserver_quantizer(&q, o)); /* still nothing seen */
  FAILS(QTN_EINVAL, "moving_average", qobserver_merge(o, other));
  qattrs_free(a);
  qobserver_free(o);
  qobserver_free(other);
  qtensor_free(nan);
  qtensor_free(inf);
  qtensor_free(ints);
  qtensor_free(empty);
}

static void attributes_are_replaced(void **state) {
  qattrs *a = attrs_of("numerics", "onnx");
  qquantizer *q = NULL;
  const double one = 1;
  (void)state;
  OK(qattrs_set_int(a, "numerics", 3));
  FAILS(QTN_EINVAL, "numerics", qquantizer_create(&q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, &one, NULL, 1, a));
  OK(qattrs_set_string(a, "numerics", "fbgemm"));
  OK(qquantizer_create(&q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, &one, NULL, 1, a));
  qquantizer_free(q);
  qattrs_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters),
      cmocka_unit_test(default_zeros_lie_in_the_range),
      cmocka_unit_test(observe_for_unsigned_grids),
      cmocka_unit_test(counts),
      cmocka_unit_test(bad_parameters),
      cmocka_unit_test(choose_from_ranges),
      cmocka_unit_test(choose_per_channel),
      cmocka_unit_test(observe_minmax),
      cmocka_unit_test(observe_moving_average),
      cmocka_unit_test(observe_other_kinds),
      cmocka_unit_test(observe_badly),
      cmocka_unit_test(attributes_are_replaced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
