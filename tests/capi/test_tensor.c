/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: creation, storage, views, quantize and dequantize, copies. Names begin with the rows of the requirements. */
#include <math.h>

#include "check.h"

static const uint8_t kBytes[] = {66, 95, 39, 25, 1, 71, 94, 43, 13, 48};
static const float kReals[] = {6.4e-3f, 9.3e-3f, 3.7e-3f, 2.3e-3f, -1.0e-4f,
                               6.9e-3f, 9.2e-3f, 4.1e-3f, 1.1e-3f, 4.6e-3f};
static const float kSeed[] = {0.1231f,  -1.9974f, 0.2806f, 0.6392f,  -0.2118f, 0.6879f,
                              -0.1315f, -0.4067f, 0.5414f, -0.4595f, -1.7321f, -0.5273f};

/* The quantized tensor of the seed notebook. */
static qtensor *seed_bytes(void) {
  qquantizer *q = affine(QTN_UINT8, 1e-4, 2);
  qtensor *t = tensor_of(QTN_UINT8, q, kBytes, sizeof kBytes, DIMS(10));
  qquantizer_free(q);
  return t;
}

static double item_of(const qtensor *t) {
  double value = 0;
  OK(qtensor_item(&value, t));
  return value;
}

static void quantize_per_tensor(void **state) {
  qtensor *x = FLOATS(kSeed, DIMS(2, 2, 3)), *q = NULL, *y = NULL;
  qquantizer *grid = affine(QTN_INT32, 1e-4, 2);
  size_t i;
  (void)state;
  OK(qtensor_quantize(&q, x, grid));
  assert_int_equal(qtensor_dtype(q), QTN_INT32);
  check_shape(q, DIMS(2, 2, 3));
  for (i = 0; i < COUNT(kSeed); ++i)
    assert_int_equal(((const int32_t *)qtensor_data(q))[i], lrint((double)kSeed[i] * 1e4) + 2);
  OK(qtensor_dequantize(&y, q));
  check_floats(y, kSeed, COUNT(kSeed), 1e-6f);
  qtensor_free(y);
  FAILS(QTN_EDTYPE, "quantized", qtensor_quantize(&y, q, grid));
  FAILS(QTN_EDTYPE, "without a quantizer", qtensor_dequantize(&y, x));
  qtensor_free(x);
  qtensor_free(q);
  qquantizer_free(grid);
}

static void quantize_per_channel(void **state) {
  const double scales[] = {1e-1, 1e-2, 1e-3};
  const int64_t zeros[] = {-1, 0, 1};
  const float wanted[] = {0.1f, -2.0f, 0.281f, 0.6f, -0.21f, 0.688f, -0.1f, -0.41f, 0.541f, -0.5f, -1.73f, -0.527f};
  qtensor *x = FLOATS(kSeed, DIMS(2, 2, 3)), *q = NULL, *y = NULL;
  qquantizer *grid = NULL, *misfit = NULL;
  (void)state;
  OK(qquantizer_create(&grid, QTN_INT32, QTN_PER_CHANNEL_AFFINE, 2, scales, zeros, 3, NULL));
  OK(qtensor_quantize(&q, x, grid));
  OK(qtensor_dequantize(&y, q));
  check_floats(y, wanted, COUNT(wanted), 1e-6f);
  assert_int_equal(qquantizer_axis(qtensor_quantizer(q)), 2);
  OK(qquantizer_create(&misfit, QTN_INT32, QTN_PER_CHANNEL_AFFINE, 1, scales, zeros, 3, NULL));
  qtensor_free(y);
  FAILS(QTN_ESHAPE, "2x2x3", qtensor_quantize(&y, x, misfit));
  qtensor_free(x);
  qtensor_free(q);
  qquantizer_free(grid);
  qquantizer_free(misfit);
}

static void created_with_a_quantizer(void **state) {
  qquantizer *grid = affine(QTN_INT32, 1e-4, 2), *bytes = affine(QTN_UINT8, 1e-4, 2);
  const float zeros[] = {-2e-4f, -2e-4f, -2e-4f};
  qtensor *t = NULL, *y = NULL;
  (void)state;
  OK(qtensor_create(&t, QTN_INT32, DIMS(3), grid, NULL,
                    0)); /* no data: zero-filled, which stands for -zero_point * scale */
  OK(qtensor_dequantize(&y, t));
  check_floats(y, zeros, 3, 1e-9f);
  qtensor_free(t);
  qtensor_free(y);
  FAILS(QTN_EDTYPE, "quantizer is for uint8", qtensor_create(&t, QTN_INT8, DIMS(10), bytes, kBytes, sizeof kBytes));
  FAILS(QTN_EINVAL, "nbytes is 9", qtensor_create(&t, QTN_UINT8, DIMS(10), bytes, kBytes, 9));
  FAILS(QTN_ESHAPE, "negative dimension, -1", qtensor_create(&t, QTN_UINT8, DIMS(-1), NULL, NULL, 0));
  FAILS(QTN_ESHAPE, "9", qtensor_create(&t, QTN_UINT8, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1), NULL, NULL, 0));
  FAILS(QTN_ESHAPE, "", qtensor_create(&t, QTN_UINT8, DIMS(INT64_MAX, INT64_MAX), NULL, NULL, 0));
  FAILS(QTN_ENOMEM, "", qtensor_create(&t, QTN_FLOAT64, DIMS(INT64_MAX / 4), NULL, NULL, 0));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their operator new ends the program instead */
  FAILS(QTN_ENOMEM, "", qtensor_create(&t, QTN_UINT8, DIMS(INT64_MAX / 4), NULL, NULL, 0));
#endif
  qquantizer_free(grid);
  qquantizer_free(bytes);
}

static void what_a_quantized_tensor_says(void **state) {
  qtensor *q = seed_bytes(), *y = NULL;
  const qquantizer *grid = qtensor_quantizer(q);
  (void)state;
  OK(qtensor_dequantize(&y, q));
  check_floats(y, kReals, COUNT(kReals), 1e-8f);
  assert_null(qtensor_quantizer(y));
  assert_non_null(grid);
  assert_true(qquantizer_scales(grid)[0] == 1e-4);
  assert_int_equal(qquantizer_zero_points(grid)[0], 2);
  assert_int_equal(qquantizer_scheme(grid), QTN_PER_TENSOR_AFFINE);
  assert_int_equal(qquantizer_count(grid), 1);
  check_shape(q, DIMS(10));
  assert_int_equal(qtensor_strides(q)[0], 1);
  assert_int_equal(qtensor_nbytes(q), 10);
  assert_memory_equal(qtensor_data(q), kBytes, sizeof kBytes);
  assert_int_equal((uintptr_t)qtensor_data(q) % 64, 0);
  qtensor_free(q);
  qtensor_free(y);
}

/** One quantizer in memory, however many tensors have it, which lives as long as the last of them. */
static void quantizers_are_shared(void **state) {
  const double scales[] = {0.5, 0.25, 2};
  const float reals[] = {1, 2, 4, -1, -2, -4};
  qquantizer *grid = NULL;
  qtensor *x = FLOATS(reals, DIMS(2, 3)), *a = NULL, *b = NULL, *view = NULL, *twin = NULL, *row = NULL, *made = NULL;
  const double *stored;
  (void)state;
  OK(qquantizer_create(&grid, QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 1, scales, NULL, 3, NULL));
  stored = qquantizer_scales(grid);
  OK(qtensor_quantize(&a, x, grid));
  OK(qtensor_quantize(&b, x, grid));
  OK(qtensor_share(&view, a));
  OK(qtensor_contiguous(&twin, b));
  OK(qtensor_slice(&row, b, 0, 1, 2, 1));
  OK(qtensor_create(&made, QTN_INT8, DIMS(2, 3), qtensor_quantizer(view), NULL, 0));
  qquantizer_free(grid);
  qtensor_free(a);
  assert_ptr_equal(qquantizer_scales(qtensor_quantizer(b)), stored);
  assert_ptr_equal(qquantizer_scales(qtensor_quantizer(view)), stored);
  assert_ptr_equal(qquantizer_scales(qtensor_quantizer(twin)), stored);
  assert_ptr_equal(qquantizer_scales(qtensor_quantizer(row)), stored);
  assert_ptr_equal(qquantizer_scales(qtensor_quantizer(made)), stored);
  qtensor_free(b);
  qtensor_free(view);
  qtensor_free(row);
  qtensor_free(made);
  assert_memory_equal(qquantizer_scales(qtensor_quantizer(twin)), scales, sizeof scales);
  qtensor_free(twin);
  qtensor_free(x);
}

static void select_assign_item(void **state) {
  qtensor *q = seed_bytes(), *third = NULL, *first = NULL, *value = NULL, *pair = NULL;
  const float assigned[] = {3.5f};
  (void)state;
  OK(qtensor_select(&third, q, 0, 2));
  check_shape(third, NULL, 0);
  assert_float_equal(item_of(third), 0.0037, 1e-9);
  OK(qtensor_select(&first, q, 0, -10));
  assert_float_equal(item_of(first), 0.0064, 1e-9);
  value = FLOATS(assigned, NULL, 0);
  OK(qtensor_copy(first, value)); /* q[0] = 3.5 saturates */
  assert_int_equal(*(const uint8_t *)qtensor_data(q), 255);
  assert_float_equal(item_of(first), 0.0253, 1e-8);
  FAILS(QTN_EINVAL, "index 10", qtensor_select(&pair, q, 0, 10));
  FAILS(QTN_EINVAL, "", qtensor_select(&pair, q, 1, 0));
  FAILS(QTN_EINVAL, "", qtensor_select(&pair, first, 0, 0));
  FAILS(QTN_ESHAPE, "10 elements", qtensor_item(&(double){0}, q));
  qtensor_free(q);
  assert_float_equal(item_of(third), 0.0037, 1e-9); /* a view outlives its parent */
  qtensor_free(third);
  qtensor_free(first);
  qtensor_free(value);
}

static void copies(void **state) {
  const int8_t ints[] = {-16, 40, 70, 33, 66, 86};
  qquantizer *a = affine(QTN_INT8, 0.1, 0), *b = affine(QTN_INT8, 1, -1), *u = affine(QTN_UINT8, 1, 0);
  qtensor *src = tensor_of(QTN_INT8, a, ints, sizeof ints, DIMS(2, 3)), *dst = NULL, *view = NULL;
  qtensor *other = NULL, *flat = NULL, *plain = NULL, *plain2 = NULL;
  const float reals[] = {-1.6f, 4, 7, 3.3f, 6.6f, 8.6f};
  (void)state;
  OK(qtensor_create(&dst, QTN_INT8, DIMS(2, 3), b, NULL, 0));
  OK(qtensor_create(&other, QTN_UINT8, DIMS(2, 3), u, NULL, 0));
  OK(qtensor_create(&flat, QTN_INT8, DIMS(6), b, NULL, 0));
  plain = FLOATS(reals, DIMS(2, 3));
  OK(qtensor_share(&view, dst));
  OK(qtensor_copy(dst, src));
  assert_true(qquantizer_scales(qtensor_quantizer(dst))[0] == 0.1); /* dst takes src's quantizer */
  assert_int_equal(qquantizer_zero_points(qtensor_quantizer(dst))[0], 0);
  assert_memory_equal(qtensor_data(dst), ints, sizeof ints);
  assert_true(qquantizer_scales(qtensor_quantizer(view))[0] == 1); /* another handle keeps its own */
  FAILS(QTN_EDTYPE, "", qtensor_copy(other, src));
  FAILS(QTN_ESHAPE, "2x3", qtensor_copy(flat, src));
  FAILS(QTN_EDTYPE, "dequantize", qtensor_copy(plain, src));
  OK(qtensor_copy(src, plain)); /* floats are quantized by dst's quantizer */
  assert_memory_equal(qtensor_data(src), ints, sizeof ints);
  OK(qtensor_create(&plain2, QTN_FLOAT32, DIMS(2, 3), NULL, NULL, 0));
  OK(qtensor_copy(plain2, plain));
  check_floats(plain2, reals, 6, 0);
  qtensor_free(plain2);
  OK(qtensor_create(&plain2, QTN_FLOAT64, DIMS(2, 3), NULL, NULL, 0));
  FAILS(QTN_EDTYPE, "float64", qtensor_copy(plain2, plain));
  qtensor_free(src);
  qtensor_free(dst);
  qtensor_free(view);
  qtensor_free(other);
  qtensor_free(flat);
  qtensor_free(plain);
  qtensor_free(plain2);
  qquantizer_free(a);
  qquantizer_free(b);
  qquantizer_free(u);
}

static void copy_onto_itself(void **state) {
  const float values[] = {1, 2, 3, 4}, transposed[] = {1, 3, 2, 4};
  const int32_t swap[] = {1, 0};
  qtensor *t = FLOATS(values, DIMS(2, 2)), *turned = NULL;
  (void)state;
  OK(qtensor_permute(&turned, t, swap, 2));
  OK(qtensor_copy(t, turned));
  check_floats(t, transposed, 4, 0);
  qtensor_free(t);
  qtensor_free(turned);
}

static void views_share_storage(void **state) {
  const int8_t ints[] = {-16, 40, 70, 33, 66, 86}, turned_ints[] = {-16, 33, 40, 66, 70, 86};
  const double scales[] = {0.1, 0.2, 0.3};
  const int32_t swap[] = {1, -2}, twice[] = {0, 0};
  qquantizer *grid = NULL;
  qtensor *t = NULL, *turned = NULL, *flat = NULL, *again = NULL, *part = NULL, *column = NULL;
  (void)state;
  OK(qquantizer_create(&grid, QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 1, scales, NULL, 3, NULL));
  t = tensor_of(QTN_INT8, grid, ints, sizeof ints, DIMS(2, 3));
  OK(qtensor_permute(&turned, t, swap, 2));
  check_shape(turned, DIMS(3, 2));
  assert_ptr_equal(qtensor_data(turned), qtensor_data(t));
  assert_int_equal(qtensor_strides(turned)[0], 1);
  assert_int_equal(qtensor_strides(turned)[1], 3);
  assert_int_equal(qquantizer_axis(qtensor_quantizer(turned)), 0); /* the axis follows */
  OK(qtensor_contiguous(&flat, turned));
  assert_memory_equal(qtensor_data(flat), turned_ints, sizeof turned_ints);
  assert_ptr_not_equal(qtensor_data(flat), qtensor_data(t));
  OK(qtensor_contiguous(&again, flat));
  assert_ptr_equal(qtensor_data(again), qtensor_data(flat));
  FAILS(QTN_EINVAL, "", qtensor_permute(&part, t, twice, 2));
  FAILS(QTN_EINVAL, "", qtensor_permute(&part, t, swap, 1));

  OK(qtensor_slice(&part, t, -1, 1, INT64_MAX, 1));
  check_shape(part, DIMS(2, 2));
  assert_int_equal(*(const int8_t *)qtensor_data(part), 40);
  assert_int_equal(qquantizer_count(qtensor_quantizer(part)), 2); /* channels are cut along */
  assert_true(qquantizer_scales(qtensor_quantizer(part))[0] == 0.2);
  OK(qtensor_select(&column, t, 1, 2));
  assert_int_equal(qquantizer_scheme(qtensor_quantizer(column)), QTN_PER_TENSOR_SYMMETRIC);
  assert_true(qquantizer_scales(qtensor_quantizer(column))[0] == 0.3);
  qtensor_free(part);
  FAILS(QTN_EINVAL, "step", qtensor_slice(&part, t, 0, 0, 2, 0));
  FAILS(QTN_EINVAL, "", qtensor_slice(&part, t, 2, 0, 2, 1));
  OK(qtensor_slice(&part, t, 0, 5, 9, 1)); /* bounds are clamped as in Python */
  check_shape(part, DIMS(0, 3));
  qtensor_free(t);
  qtensor_free(turned);
  qtensor_free(flat);
  qtensor_free(again);
  qtensor_free(part);
  qtensor_free(column);
  qquantizer_free(grid);
}

static void zero_is_exact(void **state) {
  static const qdtype dtypes[] = {QTN_UINT8, QTN_INT8, QTN_UINT16, QTN_INT16, QTN_INT32};
  const float zero[] = {0.0f};
  size_t d;
  int i;
  (void)state;
  for (d = 0; d < COUNT(dtypes); ++d)
    for (i = 0; i < 20; ++i) {
      qquantizer *grid = i % 2 ? affine(dtypes[d], 0.0137 * (i + 1), i) : affine_onnx(dtypes[d], 0.0137 * (i + 1), i);
      qtensor *x = FLOATS(zero, DIMS(1)), *q = NULL;
      OK(qtensor_quantize(&q, x, grid));
      assert_true(item_of(q) == 0.0);
      qtensor_free(x);
      qtensor_free(q);
      qquantizer_free(grid);
    }
}

static void numerics_differ_at_ties(void **state) {
  const float x[] = {0.273939937f}; /* times the reciprocal 127.5, divided 127.49999 */
  qquantizer *fbgemm = affine(QTN_UINT8, 0.00214854861, 0), *onnx = affine_onnx(QTN_UINT8, 0.00214854861, 0);
  qtensor *t = FLOATS(x, DIMS(1)), *a = NULL, *b = NULL;
  (void)state;
  OK(qtensor_quantize(&a, t, fbgemm));
  OK(qtensor_quantize(&b, t, onnx));
  assert_int_equal(*(const uint8_t *)qtensor_data(a), 128);
  assert_int_equal(*(const uint8_t *)qtensor_data(b), 127);
  qtensor_free(t);
  qtensor_free(a);
  qtensor_free(b);
  qquantizer_free(fbgemm);
  qquantizer_free(onnx);
}

static void specials_saturate(void **state) {
  const float x[] = {INFINITY, -INFINITY, NAN, 1e30f, -1e30f};
  const uint8_t wanted[] = {255, 0, 7, 255, 0};
  qquantizer *grid = affine(QTN_UINT8, 0.5, 7);
  qtensor *t = FLOATS(x, DIMS(5)), *q = NULL;
  (void)state;
  OK(qtensor_quantize(&q, t, grid));
  assert_memory_equal(qtensor_data(q), wanted, sizeof wanted);
  qtensor_free(t);
  qtensor_free(q);
  qquantizer_free(grid);
}

static int deleted;
static void count_deletion(void *data, void *ctx) {
  assert_ptr_equal(*(void **)ctx, data);
  ++deleted;
}

static void wrap_deletes_once(void **state) {
  float memory[4] = {1, 2, 3, 4};
  void *ctx = memory, *mutable = NULL;
  qtensor *t = NULL, *view = NULL, *shared = NULL;
  (void)state;
  deleted = 0;
  FAILS(QTN_EINVAL, "nbytes is 15", qtensor_wrap(&t, QTN_FLOAT32, DIMS(4), NULL, memory, 15, count_deletion, &ctx));
  FAILS(QTN_EINVAL, "aligned",
        qtensor_wrap(&t, QTN_FLOAT32, DIMS(3), NULL, (char *)memory + 1, 12, count_deletion, &ctx));
  FAILS(QTN_EINVAL, "takes 2", qtensor_wrap(&t, QTN_INT4, DIMS(3), NULL, memory, 3, count_deletion, &ctx));
  assert_int_equal(deleted, 0); /* not when wrapping failed */
  OK(qtensor_wrap(&t, QTN_FLOAT32, DIMS(4), NULL, memory, sizeof memory, count_deletion, &ctx));
  assert_ptr_equal(qtensor_data(t), memory);
  OK(qtensor_slice(&view, t, 0, 1, 3, 1));
  OK(qtensor_share(&shared, t));
  OK(qtensor_data_mut(&mutable, view));
  *(float *)mutable = 20;
  assert_true(memory[1] == 20);
  qtensor_free(t);
  qtensor_free(shared);
  assert_int_equal(deleted, 0);
  qtensor_free(view);
  assert_int_equal(deleted, 1);
  OK(qtensor_wrap(&t, QTN_FLOAT32, DIMS(4), NULL, memory, sizeof memory, NULL, NULL));
  qtensor_free(t);
  assert_int_equal(deleted, 1);
}

static void scalars_and_empty(void **state) {
  qtensor *scalar = NULL, *empty = NULL, *y = NULL, *q = NULL;
  qquantizer *grid = affine(QTN_INT8, 0.1, 0);
  (void)state;
  OK(qtensor_create(&scalar, QTN_FLOAT32, NULL, 0, NULL, NULL, 0));
  assert_true(item_of(scalar) == 0);
  assert_int_equal(qtensor_rank(scalar), 0);
  OK(qtensor_create(&empty, QTN_FLOAT32, DIMS(0, 3), NULL, NULL, 0));
  assert_int_equal(qtensor_nbytes(empty), 0);
  OK(qtensor_quantize(&q, empty, grid));
  OK(qtensor_dequantize(&y, q));
  check_shape(y, DIMS(0, 3));
  qtensor_free(scalar);
  qtensor_free(empty);
  qtensor_free(q);
  qtensor_free(y);
  qquantizer_free(grid);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quantize_per_tensor),
      cmocka_unit_test(quantize_per_channel),
      cmocka_unit_test(created_with_a_quantizer),
      cmocka_unit_test(what_a_quantized_tensor_says),
      cmocka_unit_test(quantizers_are_shared),
      cmocka_unit_test(select_assign_item),
      cmocka_unit_test(copies),
      cmocka_unit_test(copy_onto_itself),
      cmocka_unit_test(views_share_storage),
      cmocka_unit_test(zero_is_exact),
      cmocka_unit_test(numerics_differ_at_ties),
      cmocka_unit_test(specials_saturate),
      cmocka_unit_test(wrap_deletes_once),
      cmocka_unit_test(scalars_and_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
