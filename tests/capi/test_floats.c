/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program has said of its floats, how they round, whether they trap, whether denormals are zero, changes no bit
 * of a result, on no thread, and stays as it is. */
#define _GNU_SOURCE
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "check.h"

enum { PIXELS = 64, CLASSES = 10, PRODUCTS = 12 };

static float pixels[PIXELS], faded[32];
static qmodel *real;

/* Everything that is computed: a quantized tensor, a product, a model that is quantized, and both run. */
typedef struct results {
  int8_t integers[PIXELS];
  float product[PRODUCTS], denormal[PRODUCTS], in_float[CLASSES], in_int8[CLASSES];
} results;

static void copy(void *to, const qtensor *from, size_t nbytes) {
  assert_int_equal(qtensor_nbytes(from), nbytes);
  memcpy(to, qtensor_data(from), nbytes);
}

static void run(float *y, const qmodel *m, const qtensor *x) {
  qsession *session = NULL;
  qtensor *result = NULL;
  const qtensor *inputs[] = {x};
  OK(qsession_create(&session, m, NULL));
  OK(qsession_run(&result, 1, session, inputs, 1));
  copy(y, result, CLASSES * sizeof *y);
  qtensor_free(result);
  qsession_free(session);
}

static void multiply(float *product, const qtensor *x, const float *weights) {
  qtensor *weight = NULL, *y = NULL;
  OK(qtensor_create(&weight, QTN_FLOAT32, DIMS(4, 8), NULL, weights, 32 * sizeof *weights));
  OK(qop_linear(&y, x, weight, NULL, NULL));
  copy(product, y, PRODUCTS * sizeof *product);
  qtensor_free(weight);
  qtensor_free(y);
}

static void compute(results *r) {
  qtensor *image = NULL, *integers = NULL, *x = NULL;
  qquantizer *grid = affine(QTN_INT8, 0.007, 3);
  qconfig *config = NULL;
  qmodel *prepared = NULL, *int8 = NULL;
  const qtensor *inputs[1];
  OK(qtensor_create(&image, QTN_FLOAT32, DIMS(1, 1, 8, 8), NULL, pixels, sizeof pixels));
  OK(qtensor_quantize(&integers, image, grid));
  copy(r->integers, integers, sizeof r->integers);
  OK(qtensor_create(&x, QTN_FLOAT32, DIMS(3, 8), NULL, pixels, 24 * sizeof *pixels));
  multiply(r->product, x, pixels + 24);
  multiply(r->denormal, x, faded);
  OK(qconfig_create(&config, "onnx"));
  OK(qmodel_prepare(&prepared, real, config, QTN_PTQ));
  inputs[0] = image;
  OK(qmodel_calibrate(prepared, inputs, 1));
  OK(qmodel_convert(&int8, prepared, NULL));
  run(r->in_float, real, image);
  run(r->in_int8, int8, image);
  qtensor_free(image);
  qtensor_free(integers);
  qtensor_free(x);
  qquantizer_free(grid);
  qconfig_free(config);
  qmodel_free(prepared);
  qmodel_free(int8);
}

static results wanted;

static int set_up(void **state) {
  uint32_t random = 1;
  int i;
  (void)state;
  for (i = 0; i < PIXELS; ++i) {
    random = random * 1664525u + 1013904223u;
    pixels[i] = (float)(random >> 8) / 16777216.0f;
  }
  for (i = 0; i < (int)COUNT(faded); ++i) faded[i] = pixels[i] * 1e-39f;
  OK(qmodel_load(&real, QTN_DIGITS "/digits.onnx"));
  OK(qlib_set_threads(1)); /* the others begin in the tests */
  compute(&wanted);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  qmodel_free(real);
  return 0;
}

static int differs(void) {
  int threads, different = 0;
  for (threads = 3; threads > 0; --threads) {
    results found;
    memset(&found, 0, sizeof found);
    OK(qlib_set_threads(threads));
    compute(&found);
    different += memcmp(&found, &wanted, sizeof found) != 0;
  }
  return different;
}

static void rounding_is_the_programs(void **state) {
  static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(modes); ++i) {
    int different, mode;
    assert_int_equal(fesetround(modes[i]), 0);
    different = differs();
    mode = fegetround();
    fesetround(FE_TONEAREST);
    assert_int_equal(different, 0);
    assert_int_equal(mode, modes[i]);
  }
}

/* A trap would end this process. */
static void traps_are_the_programs(void **state) {
  int different, traps;
  (void)state;
  feclearexcept(FE_ALL_EXCEPT);
  if (feenableexcept(FE_ALL_EXCEPT) < 0) skip(); /* this CPU has none */
  different = differs();
  traps = fegetexcept();
  fedisableexcept(FE_ALL_EXCEPT);
  assert_int_equal(different, 0);
  assert_int_equal(traps, FE_ALL_EXCEPT);
}

/* As programs are from their start on which were compiled with -ffast-math, or have loaded a library that was. */
static void denormals_are_the_programs(void **state) {
#if defined(__x86_64__)
  const unsigned before = _mm_getcsr(), flushing = (before & ~0x3fu) | 0x8040;
  int different;
  (void)state;
  _mm_setcsr(flushing);
  different = differs();
  assert_int_equal(_mm_getcsr() & ~0x3fu, flushing);
  _mm_setcsr(before);
  assert_int_equal(different, 0);
#else
  (void)state;
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rounding_is_the_programs),
                                     cmocka_unit_test(traps_are_the_programs),
                                     cmocka_unit_test(denormals_are_the_programs)};
  return cmocka_run_group_tests_name("capi/floats", tests, set_up, tear_down);
}
