/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators on tensors: linear in its three arithmetics, convolution, any operator by name. */
#include <math.h>

#include "check.h"

enum { ROWS = 3, IN = 5, OUT = 4 };

static float value_at(int i) { return (float)((i * 37 + 11) % 41 - 20) / 16.0f; }

static qtensor *made(size_t count, int seed, const int64_t *shape, size_t rank) {
  float values[256];
  size_t i;
  for (i = 0; i < count; ++i) values[i] = value_at((int)i + seed);
  return tensor_of(QTN_FLOAT32, NULL, values, count * sizeof *values, shape, rank);
}

static qtensor *quantized(const qtensor *x, const qquantizer *grid) {
  qtensor *q = NULL;
  OK(qtensor_quantize(&q, x, grid));
  return q;
}

static qtensor *dequantized(const qtensor *q) {
  qtensor *y = NULL;
  OK(qtensor_dequantize(&y, q));
  return y;
}

static int64_t int_at(const qtensor *t, size_t i) {
  return qtensor_dtype(t) == QTN_INT8 ? ((const int8_t *)qtensor_data(t))[i] : ((const uint8_t *)qtensor_data(t))[i];
}

static void linear_float(void **state) {
  qtensor *x = made(ROWS * IN, 1, DIMS(ROWS, IN)), *w = made(OUT * IN, 7, DIMS(OUT, IN)), *b = made(OUT, 3, DIMS(OUT));
  qtensor *y = NULL;
  int i, j, k;
  (void)state;
  OK(qop_linear(&y, x, w, b, NULL));
  check_shape(y, DIMS(ROWS, OUT));
  for (i = 0; i < ROWS; ++i)
    for (j = 0; j < OUT; ++j) {
      double sum = (double)float_at(b, (size_t)j);
      for (k = 0; k < IN; ++k)
        sum += (double)float_at(x, (size_t)(i * IN + k)) * (double)float_at(w, (size_t)(j * IN + k));
      assert_float_equal(float_at(y, (size_t)(i * OUT + j)), sum, 1e-5);
    }
  qtensor_free(x);
  qtensor_free(w);
  qtensor_free(b);
  qtensor_free(y);
}

/* y = sx * sw * (sum qx qw - zx sum qw - zw sum qx + K zx zw), with zw that is not 0. */
static void linear_integers(void **state) {
  qtensor *x = made(ROWS * IN, 1, DIMS(ROWS, IN)), *w = made(OUT * IN, 7, DIMS(OUT, IN)), *b = made(OUT, 3, DIMS(OUT));
  qquantizer *gx = affine(QTN_UINT8, 0.01, 125), *gw = affine(QTN_INT8, 0.02, 9), *gy = affine(QTN_UINT8, 0.05, 100);
  qtensor *qx = quantized(x, gx), *qw = quantized(w, gw), *y = NULL, *qy = NULL;
  const float product = (float)0.01 * (float)0.02;
  int i, j, k;
  (void)state;
  OK(qop_linear(&y, qx, qw, b, NULL));
  OK(qop_linear(&qy, qx, qw, b, gy));
  assert_int_equal(qtensor_dtype(qy), QTN_UINT8);
  for (i = 0; i < ROWS; ++i)
    for (j = 0; j < OUT; ++j) {
      int64_t sum = 0, sum_x = 0, sum_w = 0, acc;
      const size_t at = (size_t)(i * OUT + j);
      float wanted;
      for (k = 0; k < IN; ++k) {
        const int64_t a = int_at(qx, (size_t)(i * IN + k)), c = int_at(qw, (size_t)(j * IN + k));
        sum += a * c;
        sum_x += a;
        sum_w += c;
      }
      acc = sum - 125 * sum_w - 9 * sum_x + (int64_t)IN * 125 * 9;
      wanted = (float)acc * product + float_at(b, (size_t)j);
      assert_float_equal(float_at(y, at), wanted, 1e-6);
      acc += lrint((double)float_at(b, (size_t)j) / (double)product);
      wanted = rintf((float)acc * (product / 0.05f)) + 100;
      assert_int_equal(int_at(qy, at), wanted < 0 ? 0 : wanted > 255 ? 255 : (int64_t)wanted);
    }
  qtensor_free(x);
  qtensor_free(w);
  qtensor_free(b);
  qtensor_free(qx);
  qtensor_free(qw);
  qtensor_free(y);
  qtensor_free(qy);
  qquantizer_free(gx);
  qquantizer_free(gw);
  qquantizer_free(gy);
}

/* Under fbgemm numerics x is quantized as uint8 with [0, 127]; under onnx ones with [0, 255]. */
static void linear_dynamic(void **state) {
  static const int steps[] = {127, 255};
  int numerics;
  (void)state;
  for (numerics = 0; numerics < 2; ++numerics) {
    const double scales[OUT] = {0.011, 0.012, 0.013, 0.014};
    qtensor *x = made(ROWS * IN, 1, DIMS(ROWS, IN)), *w = made(OUT * IN, 7, DIMS(OUT, IN)),
            *b = made(OUT, 3, DIMS(OUT));
    qattrs *a = NULL;
    qquantizer *gw = NULL, *gx = NULL;
    qtensor *qw = NULL, *qx = NULL, *rw = NULL, *y1 = NULL, *y2 = NULL, *y3 = NULL;
    float min = 0, max = 0, sx, zx;
    double differences = 0;
    size_t i, j, k;
    OK(qattrs_create(&a));
    OK(qattrs_set_string(a, "numerics", numerics ? "onnx" : "fbgemm"));
    OK(qquantizer_create(&gw, QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 0, scales, NULL, OUT, a));
    qw = quantized(w, gw);
    rw = dequantized(qw);
    for (i = 0; i < ROWS * IN; ++i) {
      min = fminf(min, float_at(x, i));
      max = fmaxf(max, float_at(x, i));
    }
    sx = (max - min) / (float)steps[numerics];
    zx = rintf(-min / sx);
    gx = numerics ? affine_onnx(QTN_UINT8, (double)sx, (int64_t)zx) : affine(QTN_UINT8, (double)sx, (int64_t)zx);
    qx = quantized(x, gx);
    OK(qop_linear(&y1, x, qw, b, NULL));
    OK(qop_linear(&y2, qx, qw, b, NULL));
    OK(qop_linear(&y3, x, rw, b, NULL));
    assert_int_equal(qtensor_dtype(y1), QTN_FLOAT32);
    assert_memory_equal(qtensor_data(y1), qtensor_data(y2), qtensor_nbytes(y1));
    for (i = 0; i < ROWS; ++i)
      for (j = 0; j < OUT; ++j) { /* the stated distance from float */
        double bound = 1e-5;
        const double difference = fabs((double)float_at(y1, i * OUT + j) - (double)float_at(y3, i * OUT + j));
        for (k = 0; k < IN; ++k) bound += (double)sx / 2 * fabs((double)float_at(rw, j * IN + k));
        assert_true(difference <= bound);
        differences += difference;
      }
    assert_true(differences > 0);
    qtensor_free(x);
    qtensor_free(w);
    qtensor_free(b);
    qtensor_free(qw);
    qtensor_free(qx);
    qtensor_free(rw);
    qtensor_free(y1);
    qtensor_free(y2);
    qtensor_free(y3);
    qquantizer_free(gw);
    qquantizer_free(gx);
    qattrs_free(a);
  }
}

static void linear_shapes(void **state) {
  qtensor *w = made(OUT * IN, 7, DIMS(OUT, IN)), *b = made(OUT, 3, DIMS(OUT)), *y = NULL;
  qtensor *vector = made(IN, 1, DIMS(IN)), *deep = made(2 * 3 * IN, 1, DIMS(2, 3, IN)), *none = NULL;
  qtensor *wide = made(IN + 1, 1, DIMS(IN + 1)), *scalar = made(1, 0, NULL, 0), *ints = NULL, *nan = NULL, *qw = NULL;
  const float bad[IN] = {1, NAN, 1, 1, 1};
  qquantizer *grid = affine(QTN_INT8, 0.02, 0);
  (void)state;
  OK(qop_linear(&y, vector, w, NULL, NULL));
  check_shape(y, DIMS(OUT));
  qtensor_free(y);
  OK(qop_linear(&y, deep, w, b, grid));
  check_shape(y, DIMS(2, 3, OUT));
  assert_int_equal(qtensor_dtype(y), QTN_INT8);
  qtensor_free(y);
  OK(qtensor_create(&none, QTN_FLOAT32, DIMS(0, IN), NULL, NULL, 0));
  OK(qop_linear(&y, none, w, b, NULL));
  check_shape(y, DIMS(0, OUT));
  qtensor_free(y);
  FAILS(QTN_ESHAPE, "linear: weight has 5 input features, x has 6", qop_linear(&y, wide, w, b, NULL));
  FAILS(QTN_ESHAPE, "linear: x is a scalar", qop_linear(&y, scalar, w, b, NULL));
  FAILS(QTN_ESHAPE, "rank 2", qop_linear(&y, vector, b, NULL, NULL));
  FAILS(QTN_ESHAPE, "bias", qop_linear(&y, vector, w, vector, NULL));
  OK(qtensor_create(&ints, QTN_INT32, DIMS(IN), NULL, NULL, 0));
  FAILS(QTN_EDTYPE, "int32", qop_linear(&y, ints, w, NULL, NULL));
  nan = FLOATS(bad, DIMS(IN));
  qw = quantized(w, grid);
  FAILS(QTN_EINVAL, "NaN", qop_linear(&y, nan, qw, NULL, NULL));
  qtensor_free(w);
  qtensor_free(b);
  qtensor_free(vector);
  qtensor_free(deep);
  qtensor_free(none);
  qtensor_free(wide);
  qtensor_free(scalar);
  qtensor_free(ints);
  qtensor_free(nan);
  qtensor_free(qw);
  qquantizer_free(grid);
}

/* Convolution of [1, 2, 4, 4] by [2, 2, 3, 3], padded by one, against its definition. */
static void conv2d(void **state) {
  qtensor *x = made(32, 1, DIMS(1, 2, 4, 4)), *w = made(36, 7, DIMS(2, 2, 3, 3)), *b = made(2, 3, DIMS(2));
  qquantizer *gx = affine_onnx(QTN_UINT8, 0.01, 125), *gw = affine_onnx(QTN_INT8, 0.02, 0);
  qquantizer *gy = affine_onnx(QTN_UINT8, 0.05, 100);
  qtensor *qx = quantized(x, gx), *qw = quantized(w, gw), *rx = dequantized(qx), *rw = dequantized(qw);
  qtensor *y = NULL, *qy = NULL, *qf = NULL, *mixed = NULL;
  qattrs *a = NULL;
  int oc, oh, ow, ic, kh, kw;
  (void)state;
  OK(qattrs_create(&a));
  OK(qattrs_set_ints(a, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
  OK(qop_conv2d(&y, rx, rw, b, NULL, a));
  check_shape(y, DIMS(1, 2, 4, 4));
  OK(qop_conv2d(&qy, qx, qw, b, gy, a));
  OK(qop_conv2d(&qf, qx, qw, b, NULL, a));
  OK(qop_conv2d(&mixed, rx, qw, b, NULL, a));
  for (oc = 0; oc < 2; ++oc)
    for (oh = 0; oh < 4; ++oh)
      for (ow = 0; ow < 4; ++ow) {
        double sum = (double)float_at(b, (size_t)oc);
        const size_t at = (size_t)(oc * 16 + oh * 4 + ow);
        for (ic = 0; ic < 2; ++ic)
          for (kh = 0; kh < 3; ++kh)
            for (kw = 0; kw < 3; ++kw) {
              const int h = oh + kh - 1, v = ow + kw - 1;
              if (h < 0 || h >= 4 || v < 0 || v >= 4) continue;
              sum += (double)float_at(rx, (size_t)(ic * 16 + h * 4 + v)) *
                     (double)float_at(rw, (size_t)(oc * 18 + ic * 9 + kh * 3 + kw));
            }
        assert_float_equal(float_at(y, at), sum, 1e-5);
        assert_float_equal(float_at(mixed, at), sum, 1e-5);
        assert_float_equal(float_at(qf, at), sum, 2e-4); /* the bias is rounded to sx * sw */
        assert_float_equal(((double)int_at(qy, at) - 100) * 0.05, sum, 0.0255);
      }
  OK(qattrs_set_int(a, "colour", 1));
  qtensor_free(y);
  FAILS(QTN_EINVAL, "colour", qop_conv2d(&y, x, w, NULL, NULL, a));
  FAILS(QTN_ESHAPE, "rank 4", qop_conv2d(&y, b, w, NULL, NULL, NULL));
  FAILS(QTN_ESHAPE, "bias", qop_conv2d(&y, x, w, x, NULL, NULL));
  qtensor_free(x);
  qtensor_free(w);
  qtensor_free(b);
  qtensor_free(qx);
  qtensor_free(qw);
  qtensor_free(rx);
  qtensor_free(rw);
  qtensor_free(qy);
  qtensor_free(qf);
  qtensor_free(mixed);
  qquantizer_free(gx);
  qquantizer_free(gw);
  qquantizer_free(gy);
  qattrs_free(a);
}

static void run_by_name(void **state) {
  const float values[] = {-1, 2, -3, 4}, relu[] = {0, 2, 0, 4}, clipped[] = {-1, 2, -1, 2}, low[] = {-1}, high[] = {2};
  const float halves[] = {-1, -3}, others[] = {2, 4};
  qtensor *x = FLOATS(values, DIMS(2, 2)), *min = FLOATS(low, NULL, 0), *max = FLOATS(high, NULL, 0);
  const qtensor *unary[] = {x}, *clip[] = {x, min, max}, *half_clip[] = {x, NULL, max};
  qtensor *out[2] = {NULL, NULL};
  qattrs *a = NULL;
  (void)state;
  OK(qop_run(out, 1, "Relu", unary, 1, NULL));
  check_floats(out[0], relu, 4, 0);
  qtensor_free(out[0]);
  OK(qop_run(out, 1, "Clip", clip, 3, NULL));
  check_floats(out[0], clipped, 4, 0);
  qtensor_free(out[0]);
  OK(qop_run(out, 1, "Clip", half_clip, 3, NULL)); /* an absent input */
  qtensor_free(out[0]);
  OK(qattrs_create(&a));
  OK(qattrs_set_int(a, "axis", 1));
  OK(qattrs_set_int(a, "num_outputs", 2));
  OK(qop_run(out, 2, "Split", unary, 1, a));
  check_floats(out[0], halves, 2, 0);
  check_floats(out[1], others, 2, 0);
  qtensor_free(out[0]);
  qtensor_free(out[1]);
  FAILS(QTN_EUNSUPPORTED, "Sparkle", qop_run(out, 1, "Sparkle", unary, 1, NULL));
  FAILS(QTN_EINVAL, "Relu", qop_run(out, 1, "Relu", unary, 1, a));
  FAILS(QTN_EINVAL, "Relu", qop_run(out, 1, "Relu", clip, 3, NULL));
  FAILS(QTN_EINVAL, "Relu", qop_run(out, 2, "Relu", unary, 1, NULL));
  FAILS(QTN_EINVAL, "Relu", qop_run(out, 0, "Relu", unary, 1, NULL));
  FAILS(QTN_EINVAL, "Relu", qop_run(out, 1, "Relu", (const qtensor *const[]){NULL}, 1, NULL));
  qattrs_free(a);
  qtensor_free(x);
  qtensor_free(min);
  qtensor_free(max);
}

/* t30: torch's quantized relu, add, cat and pools, worked out by hand on halves. */
static void typed_operators(void **state) {
  const uint8_t first[] = {0, 2, 3, 10}, second[] = {4, 4, 0, 255};
  const uint8_t relus[] = {2, 2, 3, 10}, sums[] = {2, 4, 1, 255}, joined[] = {0, 2, 3, 10, 4, 4, 0, 255};
  const uint8_t halves[] = {0, 1, 1, 5, 2, 2, 0, 127};
  const float products[] = {-1, -1, -3.5f, 506.5f}, mean[] = {0.875f};
  qquantizer *grid = affine(QTN_UINT8, 0.5, 2), *coarse = affine(QTN_UINT8, 1, 1);
  qtensor *a = tensor_of(QTN_UINT8, grid, first, sizeof first, DIMS(2, 2));
  qtensor *b = tensor_of(QTN_UINT8, grid, second, sizeof second, DIMS(2, 2)), *out = NULL, *x = NULL;
  const qtensor *both[] = {a, b};
  qattrs *window = NULL;
  (void)state;
  OK(qop_relu(&out, a));
  assert_memory_equal(qtensor_data(out), relus, sizeof relus);
  assert_int_equal(qquantizer_zero_points(qtensor_quantizer(out))[0], 2);
  qtensor_free(out);
  OK(qop_add(&out, a, b, grid));
  assert_memory_equal(qtensor_data(out), sums, sizeof sums);
  qtensor_free(out);
  OK(qop_cat(&out, both, 2, 0, NULL));
  assert_memory_equal(qtensor_data(out), joined, sizeof joined);
  qtensor_free(out);
  OK(qop_cat(&out, both, 2, -2, coarse));
  assert_memory_equal(qtensor_data(out), halves, sizeof halves);
  qtensor_free(out);
  OK(qop_matmul(&out, a, b, NULL));
  check_floats(out, products, 4, 1e-6f);
  qtensor_free(out);
  OK(qtensor_reshape(&x, a, DIMS(1, 1, 2, 2)));
  OK(qattrs_create(&window));
  OK(qattrs_set_ints(window, "kernel_shape", (const int64_t[]){2, 2}, 2));
  OK(qop_max_pool2d(&out, x, window));
  assert_int_equal(*(const uint8_t *)qtensor_data(out), 10);
  assert_non_null(qtensor_quantizer(out));
  qtensor_free(out);
  OK(qop_avg_pool2d(&out, x, NULL, window));
  check_floats(out, mean, 1, 1e-6f);
  assert_null(qtensor_quantizer(out));
  qtensor_free(out);
  OK(qop_avg_pool2d(&out, x, grid, window));
  assert_int_equal(*(const uint8_t *)qtensor_data(out), 4); /* 3.75 */
  qtensor_free(out);
  FAILS(QTN_ESHAPE, "2x2", qop_max_pool2d(&out, a, window));
  FAILS(QTN_ESHAPE, "2x2", qop_avg_pool2d(&out, a, NULL, window));
  FAILS(QTN_EINVAL, "axis", qop_cat(&out, both, 2, 2, NULL));
  FAILS(QTN_EINVAL, "inputs[1] is NULL", qop_cat(&out, (const qtensor *const[]){a, NULL}, 2, 0, NULL));
  FAILS(QTN_EINVAL, "b is NULL", qop_add(&out, a, NULL, NULL));
  FAILS(QTN_EINVAL, "x is NULL", qop_relu(&out, NULL));
  qtensor_free(a);
  qtensor_free(b);
  qtensor_free(x);
  qattrs_free(window);
  qquantizer_free(grid);
  qquantizer_free(coarse);
}

/* No quantizer given: on the operands' grid where results lie on it, else float. */
static void one_rule_for_results(void **state) {
  const uint8_t bytes[] = {1, 2, 3, 4};
  const float reals[] = {-0.5f, 0, 0.5f, 1};
  qquantizer *grid = affine(QTN_UINT8, 0.5, 2), *other = affine(QTN_UINT8, 0.25, 2);
  qtensor *q = tensor_of(QTN_UINT8, grid, bytes, sizeof bytes, DIMS(4)), *out = NULL;
  qtensor *p = tensor_of(QTN_UINT8, other, bytes, sizeof bytes, DIMS(4)), *x = FLOATS(reals, DIMS(4));
  const qtensor *alike[] = {q, q}, *different[] = {q, p}, *mixed[] = {q, x};
  (void)state;
  OK(qop_cat(&out, alike, 2, 0, NULL));
  assert_non_null(qtensor_quantizer(out));
  qtensor_free(out);
  OK(qop_cat(&out, different, 2, 0, NULL));
  assert_null(qtensor_quantizer(out));
  assert_int_equal(qtensor_dtype(out), QTN_FLOAT32);
  qtensor_free(out);
  OK(qop_cat(&out, mixed, 2, 0, NULL));
  assert_null(qtensor_quantizer(out));
  qtensor_free(out);
  OK(qop_add(&out, q, x, grid)); /* mixed operands, a quantized result */
  assert_int_equal(((const uint8_t *)qtensor_data(out))[3], 6);
  qtensor_free(out);
  qtensor_free(q);
  qtensor_free(p);
  qtensor_free(x);
  qquantizer_free(grid);
  qquantizer_free(other);
}

static void run_on_integers(void **state) {
  const uint8_t bytes[] = {1, 2, 3, 4};
  const uint8_t turned[] = {1, 3, 2, 4};
  qquantizer *grid = affine(QTN_UINT8, 0.5, 2);
  qtensor *q = tensor_of(QTN_UINT8, grid, bytes, sizeof bytes, DIMS(2, 2)), *out = NULL;
  const qtensor *inputs[] = {q, q};
  const float sums[] = {-1, 0, 1, 2};
  (void)state;
  OK(qop_run(&out, 1, "Transpose", inputs, 1, NULL));
  assert_memory_equal(qtensor_data(out), turned, sizeof turned);
  assert_true(qquantizer_scales(qtensor_quantizer(out))[0] == 0.5);
  qtensor_free(out);
  OK(qop_run(&out, 1, "Add", inputs, 2, NULL));
  check_floats(out, sums, 4, 1e-6f);
  qtensor_free(out);
  qtensor_free(q);
  qquantizer_free(grid);
}

/* A bias that int32 does not hold in units of sx * sw: 100 / 1e-8 = 1e10. */
static void bias_beyond_int32(void **state) {
  const int8_t number[] = {3};
  const float bias[] = {100};
  qquantizer *fine = affine(QTN_INT8, 1e-4, 0), *coarse = affine(QTN_UINT8, 1, 0);
  qtensor *x = tensor_of(QTN_INT8, fine, number, 1, DIMS(1, 1, 1, 1)),
          *b = tensor_of(QTN_FLOAT32, NULL, bias, sizeof bias, DIMS(1));
  qtensor *row = tensor_of(QTN_INT8, fine, number, 1, DIMS(1, 1)), *y = NULL;
  const qquantizer *grids[] = {NULL, coarse};
  size_t i;
  (void)state;
  for (i = 0; i < 2; ++i) {
    OK(qop_conv2d(&y, x, x, b, grids[i], NULL));
    assert_float_equal(i == 0 ? float_at(y, 0) : (float)int_at(y, 0), 100, 1e-5);
    qtensor_free(y);
    OK(qop_linear(&y, row, row, b, grids[i]));
    assert_float_equal(i == 0 ? float_at(y, 0) : (float)int_at(y, 0), 100, 1e-5);
    qtensor_free(y);
  }
  qtensor_free(x);
  qtensor_free(b);
  qtensor_free(row);
  qquantizer_free(fine);
  qquantizer_free(coarse);
}

static qtensor *ints(const int64_t *values, size_t count) {
  const int64_t shape = (int64_t)count;
  return tensor_of(QTN_INT64, NULL, values, count * sizeof *values, &shape, 1);
}

/* A number that the grid of x does not have makes the result float32, as any operand in float does. */
static void inserted_numbers_stay(void **state) {
  const struct {
    float value;
    qdtype dtype;
  } pads[] = {{100, QTN_FLOAT32}, {0.3f, QTN_FLOAT32}, {NAN, QTN_FLOAT32}, {0.5f, QTN_INT8}, {0, QTN_INT8}};
  const float values[] = {0, 1.5f, 2, -1};
  const int64_t one_behind[] = {0, 1};
  const float region[] = {0, 2}, once = 1;
  qquantizer *grid = affine(QTN_INT8, 0.5, 3), *wide = affine(QTN_INT8, 100, 0);
  qtensor *x = FLOATS(values, DIMS(4)), *q = quantized(x, grid), *behind = ints(one_behind, 2), *out = NULL;
  qtensor *roi = FLOATS(region, DIMS(2)), *scales = tensor_of(QTN_FLOAT32, NULL, &once, sizeof once, DIMS(1));
  const qtensor *inputs[] = {q, roi, scales};
  qattrs *attrs = NULL;
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(pads); ++i) {
    qtensor *value = tensor_of(QTN_FLOAT32, NULL, &pads[i].value, sizeof(float), NULL, 0),
            *far = quantized(value, wide);
    const qtensor *real[] = {q, behind, value}, *other[] = {q, behind, far};
    OK(qop_run(&out, 1, "Pad", real, 3, NULL));
    assert_int_equal(qtensor_dtype(out), pads[i].dtype);
    if (pads[i].value == 100) check_floats(out, (const float[]){0, 1.5f, 2, -1, 100}, 5, 0);
    qtensor_free(out);
    if (pads[i].value == 100) {
      OK(qop_run(&out, 1, "Pad", other, 3, NULL));
      check_floats(out, (const float[]){0, 1.5f, 2, -1, 100}, 5, 0);
      qtensor_free(out);
    }
    qtensor_free(value);
    qtensor_free(far);
  }
  OK(qattrs_create(&attrs));
  OK(qattrs_set_string(attrs, "coordinate_transformation_mode", "tf_crop_and_resize"));
  for (i = 0; i < COUNT(pads); ++i) {
    OK(qattrs_set_float(attrs, "extrapolation_value", (double)pads[i].value));
    OK(qop_run(&out, 1, "Resize", inputs, 3, attrs));
    assert_int_equal(qtensor_dtype(out), pads[i].dtype);
    if (pads[i].value == 100) assert_float_equal(float_at(out, 3), 100, 0);
    qtensor_free(out);
  }
  qattrs_free(attrs);
  qtensor_free(x);
  qtensor_free(q);
  qtensor_free(behind);
  qtensor_free(roi);
  qtensor_free(scales);
  qquantizer_free(grid);
  qquantizer_free(wide);
}

static qtensor *plain(const qtensor *x) { return qtensor_quantizer(x) ? dequantized(x) : NULL; }

/* Tensors of fewer than 8 bits on one grid give the values that they give in float, on that grid. */
static void moved_elements_of_few_bits(void **state) {
  const qdtype dtypes[] = {QTN_INT4, QTN_UINT4, QTN_INT2, QTN_UINT2};
  const int64_t window[] = {2, 2}, fours[] = {1, 1, 3, 3}, around[] = {0, 0, 1, 0, 0, 0, 0, 2}, at[] = {0, 0, 0, 0},
                pair[] = {0, 0}, last[] = {3, 2};
  const uint8_t kept[] = {1, 0, 1, 1};
  const float twice[] = {1, 1, 2, 2};
  qtensor *two = ints(last, 2), *more = ints(fours, 4), *pads = ints(around, 8);
  qtensor *first = tensor_of(QTN_INT64, NULL, at, sizeof at, DIMS(1, 1, 2, 2));
  qtensor *tuple = tensor_of(QTN_INT64, NULL, pair, sizeof pair, DIMS(1, 2));
  qtensor *mask = tensor_of(QTN_BOOL, NULL, kept, sizeof kept, DIMS(4)), *larger = FLOATS(twice, DIMS(4));
  qattrs *none = NULL, *windows = NULL, *rows = NULL;
  size_t i, k;
  (void)state;
  OK(qattrs_create(&none));
  OK(qattrs_create(&windows));
  OK(qattrs_create(&rows));
  OK(qattrs_set_ints(windows, "kernel_shape", window, 2));
  OK(qattrs_set_int(rows, "axis", 2));
  for (i = 0; i < COUNT(dtypes); ++i) {
    qquantizer *grid = affine(dtypes[i], 0.5, 1);
    qtensor *x = made(16, 5, DIMS(1, 1, 4, 4)), *y = made(16, 2, DIMS(1, 1, 4, 4));
    qtensor *qx = quantized(x, grid), *qy = quantized(y, grid);
    const struct {
      const char *op;
      const qtensor *inputs[4];
      size_t count;
      const qattrs *attrs;
    } calls[] = {{"MaxPool", {qx}, 1, windows},
                 {"GlobalMaxPool", {qx}, 1, none},
                 {"Max", {qx, qy}, 2, none},
                 {"Min", {qx, qy}, 2, none},
                 {"ReduceMax", {qx, two}, 2, none},
                 {"ReduceMin", {qx, two}, 2, none},
                 {"Trilu", {qx}, 1, none},
                 {"Tile", {qx, more}, 2, none},
                 {"Pad", {qx, pads}, 2, none},
                 {"Resize", {qx, NULL, larger}, 3, none},
                 {"GatherElements", {qx, first}, 2, none},
                 {"GatherND", {qx, tuple}, 2, none},
                 {"Compress", {qx, mask}, 2, rows},
                 {"CenterCropPad", {qx, more}, 2, none},
                 {"Transpose", {qx}, 1, none},
                 {"Concat", {qx, qy}, 2, rows},
                 {"Gather", {qx, two}, 2, rows}};
    for (k = 0; k < COUNT(calls); ++k) {
      qtensor *got = NULL, *want = NULL, *reals[4] = {NULL}, *real;
      const qtensor *inputs[4] = {NULL};
      size_t n;
      for (n = 0; n < calls[k].count; ++n) {
        reals[n] = calls[k].inputs[n] ? plain(calls[k].inputs[n]) : NULL;
        inputs[n] = reals[n] ? reals[n] : calls[k].inputs[n];
      }
      OK(qop_run(&got, 1, calls[k].op, calls[k].inputs, calls[k].count, calls[k].attrs));
      OK(qop_run(&want, 1, calls[k].op, inputs, calls[k].count, calls[k].attrs));
      assert_int_equal(qtensor_dtype(got), dtypes[i]);
      real = dequantized(got);
      assert_int_equal(qtensor_numel(real), qtensor_numel(want));
      check_floats(real, (const float *)qtensor_data(want), (size_t)qtensor_numel(want), 0);
      qtensor_free(got);
      qtensor_free(want);
      qtensor_free(real);
      for (n = 0; n < 4; ++n) qtensor_free(reals[n]);
    }
    qtensor_free(x);
    qtensor_free(y);
    qtensor_free(qx);
    qtensor_free(qy);
    qquantizer_free(grid);
  }
  qattrs_free(none);
  qattrs_free(windows);
  qattrs_free(rows);
  qtensor_free(two);
  qtensor_free(more);
  qtensor_free(pads);
  qtensor_free(first);
  qtensor_free(tuple);
  qtensor_free(mask);
  qtensor_free(larger);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear_float),
      cmocka_unit_test(linear_integers),
      cmocka_unit_test(linear_dynamic),
      cmocka_unit_test(linear_shapes),
      cmocka_unit_test(conv2d),
      cmocka_unit_test(run_by_name),
      cmocka_unit_test(typed_operators),
      cmocka_unit_test(one_rule_for_results),
      cmocka_unit_test(run_on_integers),
      cmocka_unit_test(inserted_numbers_stay),
      cmocka_unit_test(moved_elements_of_few_bits),
      cmocka_unit_test(bias_beyond_int32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
