/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors as text, byte for byte what PyTorch prints less the "torch." of type and scheme names. */
#include "check.h"

static const float kSeed[] = {0.1231f,  -1.9974f, 0.2806f, 0.6392f,  -0.2118f, 0.6879f,
                              -0.1315f, -0.4067f, 0.5414f, -0.4595f, -1.7321f, -0.5273f};

static void check_text(const qtensor *t, const char *wanted) {
  char text[4096];
  size_t length = 0;
  OK(qtensor_describe(text, sizeof text, &length, t));
  assert_string_equal(text, wanted);
  assert_int_equal(length, strlen(wanted));
}

static void per_tensor(void **state) {
  qtensor *x = FLOATS(kSeed, DIMS(2, 2, 3)), *q = NULL;
  qquantizer *grid = affine(QTN_INT32, 1e-4, 2);
  (void)state;
  OK(qtensor_quantize(&q, x, grid));
  check_text(q,
             "tensor([[[ 0.1231, -1.9974,  0.2806],\n"
             "         [ 0.6392, -0.2118,  0.6879]],\n"
             "\n"
             "        [[-0.1315, -0.4067,  0.5414],\n"
             "         [-0.4595, -1.7321, -0.5273]]], size=(2, 2, 3), dtype=qint32,\n"
             "       quantization_scheme=per_tensor_affine, scale=0.0001, zero_point=2)");
  check_text(x,
             "tensor([[[ 0.1231, -1.9974,  0.2806],\n"
             "         [ 0.6392, -0.2118,  0.6879]],\n"
             "\n"
             "        [[-0.1315, -0.4067,  0.5414],\n"
             "         [-0.4595, -1.7321, -0.5273]]])");
  qtensor_free(x);
  qtensor_free(q);
  qquantizer_free(grid);
}

static void per_channel(void **state) {
  const double scales[] = {1e-1, 1e-2, 1e-3};
  const int64_t zeros[] = {-1, 0, 1};
  qtensor *x = FLOATS(kSeed, DIMS(2, 2, 3)), *q = NULL;
  qquantizer *grid = NULL;
  (void)state;
  OK(qquantizer_create(&grid, QTN_INT32, QTN_PER_CHANNEL_AFFINE, 2, scales, zeros, 3, NULL));
  OK(qtensor_quantize(&q, x, grid));
  check_text(q,
             "tensor([[[ 0.1000, -2.0000,  0.2810],\n"
             "         [ 0.6000, -0.2100,  0.6880]],\n"
             "\n"
             "        [[-0.1000, -0.4100,  0.5410],\n"
             "         [-0.5000, -1.7300, -0.5270]]], size=(2, 2, 3), dtype=qint32,\n"
             "       quantization_scheme=per_channel_affine,\n"
             "       scale=tensor([0.1000, 0.0100, 0.0010], dtype=float64),\n"
             "       zero_point=tensor([-1,  0,  1]), axis=2)");
  qtensor_free(x);
  qtensor_free(q);
  qquantizer_free(grid);
}

static void bytes(void **state) {
  const uint8_t bytes[] = {66, 95, 39, 25, 1, 71, 94, 43, 13, 48};
  const int32_t ints[] = {0, 0, 0, 0, 64, 0, 80, 0, 0, 0};
  qquantizer *grid = affine(QTN_UINT8, 1e-4, 2), *wide = affine(QTN_INT32, 1e-4, 2);
  qtensor *t = tensor_of(QTN_UINT8, grid, bytes, sizeof bytes, DIMS(10)), *third = NULL;
  (void)state;
  check_text(t,
             "tensor([ 6.4000e-03,  9.3000e-03,  3.7000e-03,  2.3000e-03, -1.0000e-04,\n"
             "         6.9000e-03,  9.2000e-03,  4.1000e-03,  1.1000e-03,  4.6000e-03],\n"
             "       size=(10,), dtype=quint8,\n"
             "       quantization_scheme=per_tensor_affine, scale=0.0001, zero_point=2)");
  OK(qtensor_select(&third, t, 0, 2));
  check_text(third,
             "tensor(0.0037, size=(), dtype=quint8,\n"
             "       quantization_scheme=per_tensor_affine, scale=0.0001, zero_point=2)");
  qtensor_free(t);
  t = tensor_of(QTN_INT32, wide, ints, sizeof ints, DIMS(10));
  check_text(t,
             "tensor([-0.0002, -0.0002, -0.0002, -0.0002,  0.0062, -0.0002,  0.0078, -0.0002,\n"
             "        -0.0002, -0.0002], size=(10,), dtype=qint32,\n"
             "       quantization_scheme=per_tensor_affine, scale=0.0001, zero_point=2)");
  qtensor_free(t);
  qtensor_free(third);
  qquantizer_free(grid);
  qquantizer_free(wide);
}

static void copied(void **state) {
  const int8_t ints[] = {-16, 40, 70, 33, 66, 86};
  qquantizer *a = affine(QTN_INT8, 0.1, 0), *b = affine(QTN_INT8, 1, -1);
  qtensor *src = tensor_of(QTN_INT8, a, ints, sizeof ints, DIMS(2, 3)), *dst = NULL;
  (void)state;
  OK(qtensor_create(&dst, QTN_INT8, DIMS(2, 3), b, NULL, 0));
  OK(qtensor_copy(dst, src));
  check_text(dst,
             "tensor([[-1.6000,  4.0000,  7.0000],\n"
             "        [ 3.3000,  6.6000,  8.6000]], size=(2, 3), dtype=qint8,\n"
             "       quantization_scheme=per_tensor_affine, scale=0.1, zero_point=0)");
  qtensor_free(src);
  qtensor_free(dst);
  qquantizer_free(a);
  qquantizer_free(b);
}

static void saturated(void **state) {
  const float x[] = {-1, 0, 1, 20};
  const int8_t ints[] = {0, 10, 20, 127};
  qquantizer *grid = affine(QTN_INT8, 0.1, 10);
  qtensor *t = FLOATS(x, DIMS(4)), *q = NULL;
  (void)state;
  OK(qtensor_quantize(&q, t, grid));
  assert_memory_equal(qtensor_data(q), ints, sizeof ints);
  check_text(q,
             "tensor([-1.0000,  0.0000,  1.0000, 11.7000], size=(4,), dtype=qint8,\n"
             "       quantization_scheme=per_tensor_affine, scale=0.1, zero_point=10)");
  qtensor_free(t);
  qtensor_free(q);
  qquantizer_free(grid);
}

static void plain_integers(void **state) {
  const uint8_t bytes[] = {66, 95, 39, 25, 1, 71, 94, 43, 13, 48};
  const int64_t wide[] = {INT64_MAX, INT64_MIN, ((int64_t)1 << 53) + 1, 7};
  const uint64_t unsigned_wide[] = {(uint64_t)1 << 63, UINT64_MAX, 5};
  qtensor *t = tensor_of(QTN_UINT8, NULL, bytes, sizeof bytes, DIMS(10));
  (void)state;
  check_text(t, "tensor([66, 95, 39, 25,  1, 71, 94, 43, 13, 48], dtype=uint8)");
  qtensor_free(t);
  t = tensor_of(QTN_INT64, NULL, wide, sizeof wide, DIMS(4));
  check_text(t,
             "tensor([ 9223372036854775807, -9223372036854775808,     9007199254740993,\n"
             "                           7])");
  qtensor_free(t);
  t = tensor_of(QTN_UINT64, NULL, unsigned_wide, sizeof unsigned_wide, DIMS(3));
  check_text(t,
             "tensor([ 9223372036854775808, 18446744073709551615,                    5],\n"
             "       dtype=uint64)");
  qtensor_free(t);
}

static void empty(void **state) {
  qquantizer *grid = affine(QTN_UINT8, 1.0, 2);
  qtensor *t = NULL;
  (void)state;
  OK(qtensor_create(&t, QTN_UINT8, DIMS(0, 1), grid, NULL, 0));
  check_text(t,
             "tensor([], size=(0, 1), dtype=quint8,\n"
             "       quantization_scheme=per_tensor_affine, scale=1.0, zero_point=2)");
  qtensor_free(t);
  qquantizer_free(grid);
}

static void cut_like_snprintf(void **state) {
  const float x[] = {1, 2};
  qtensor *t = FLOATS(x, DIMS(2));
  char text[8] = "zzzzzzz";
  size_t length = 0;
  (void)state;
  OK(qtensor_describe(NULL, 0, &length, t));
  assert_int_equal(length, strlen("tensor([1., 2.])"));
  OK(qtensor_describe(text, 7, &length, t));
  assert_string_equal(text, "tensor");
  assert_int_equal(text[7], 0);
  assert_int_equal(length, strlen("tensor([1., 2.])"));
  OK(qtensor_describe(text, 1, &length, t));
  assert_string_equal(text, "");
  qtensor_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(per_tensor), cmocka_unit_test(per_channel),   cmocka_unit_test(bytes),
      cmocka_unit_test(copied),     cmocka_unit_test(saturated),     cmocka_unit_test(plain_integers),
      cmocka_unit_test(empty),          cmocka_unit_test(cut_like_snprintf),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
