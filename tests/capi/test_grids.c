/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed types, blocks, ranges and numerics through the C API; shapes, integers and equality of tensors. */
#include <math.h>

#include "check.h"

static qattrs *int_attrs(const char *key, int64_t value) {
  qattrs *a = NULL;
  OK(qattrs_create(&a));
  OK(qattrs_set_int(a, key, value));
  return a;
}

static void packed_int4_in_blocks(void **state) {
  const double scales[] = {0.5, 1, 2, 4};
  const float values[] = {-4, 3, 1, 5, -2, 6, 3, 8, 8, 100};
  const int8_t want[] = {-8, 6, 1, 5, -2, 3, 2, 4, 4, 7}; /* blocks of 2, 2 and 1 in each row; halves to even */
  const double six[] = {0.5, 1, 1, 2, 2, 4};
  qattrs *blocks = int_attrs("block_size", 2);
  qquantizer *q = NULL;
  qtensor *x = FLOATS(values, DIMS(2, 5)), *y = NULL, *row = NULL, *flat = NULL, *integers = NULL;
  const uint8_t *bytes;
  size_t i;
  (void)state;
  FAILS(QTN_EINVAL, "block size 2",
        qquantizer_create(&q, QTN_INT4, QTN_PER_CHANNEL_AFFINE, 1, scales, NULL, 4, blocks));
  OK(qquantizer_create(&q, QTN_INT4, QTN_PER_BLOCK_SYMMETRIC, -1, scales, NULL, 4, blocks));
  assert_int_equal(qquantizer_block_size(q), 2);
  assert_int_equal(qquantizer_axis(q), -1);
  assert_int_equal(qquantizer_quant_min(q), -8);
  assert_int_equal(qquantizer_quant_max(q), 7);
  assert_string_equal(qquantizer_numerics(q), "fbgemm");
  FAILS(QTN_ESHAPE, "4 scales for the 6 blocks of 2", qtensor_quantize(&y, x, q));
  qquantizer_free(q);
  OK(qquantizer_create(&q, QTN_INT4, QTN_PER_BLOCK_SYMMETRIC, -1, six, NULL, 6, blocks));
  OK(qtensor_quantize(&y, x, q));
  assert_int_equal(qquantizer_axis(qtensor_quantizer(y)), 1);
  assert_int_equal(qtensor_nbytes(y), 5);
  assert_int_equal(qtensor_numel(y), 10);
  bytes = qtensor_data(y);
  for (i = 0; i < 10; ++i) {
    const int nibble = bytes[i / 2] >> (i % 2 * 4) & 15;
    assert_int_equal(nibble > 7 ? nibble - 16 : nibble, want[i]);
  }
  OK(qtensor_select(&row, y, 0, 1)); /* begins inside a byte */
  OK(qtensor_contiguous(&flat, row));
  assert_int_equal(((const uint8_t *)qtensor_data(flat))[0] & 15, 3);
  assert_int_equal(qquantizer_count(qtensor_quantizer(flat)), 3);
  OK(qtensor_int_repr(&integers, y));
  assert_null(qtensor_quantizer(integers));
  assert_ptr_equal(qtensor_data(integers), qtensor_data(y));
  qattrs_free(blocks);
  qquantizer_free(q);
  qtensor_free(x);
  qtensor_free(y);
  qtensor_free(row);
  qtensor_free(flat);
  qtensor_free(integers);
}

static void ranges(void **state) {
  const double one = 1;
  const float values[] = {-3, 7, 15, 16, 300};
  const uint8_t want[] = {0, 7, 15, 15, 15};
  qattrs *range = int_attrs("quant_min", 0);
  qquantizer *q = NULL;
  qtensor *x = FLOATS(values, DIMS(5)), *y = NULL;
  (void)state;
  FAILS(QTN_EINVAL, "quant_min is given",
        qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, &one, NULL, 1, range));
  OK(qattrs_set_int(range, "quant_max", 256));
  FAILS(QTN_EINVAL, "[0, 256]", qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, &one, NULL, 1, range));
  OK(qattrs_set_int(range, "quant_max", 15));
  OK(qquantizer_create(&q, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, &one, NULL, 1, range));
  assert_int_equal(qquantizer_quant_max(q), 15);
  OK(qtensor_quantize(&y, x, q));
  assert_memory_equal(qtensor_data(y), want, sizeof want);
  qattrs_free(range);
  qquantizer_free(q);
  qtensor_free(x);
  qtensor_free(y);
}

static void nvidia_is_symmetric(void **state) {
  const double min = -1.5, max = 1, half = 0.5;
  const int64_t three = 3;
  qattrs *a = NULL;
  qquantizer *q = NULL;
  (void)state;
  OK(qattrs_create(&a));
  OK(qattrs_set_string(a, "numerics", "nvidia"));
  OK(qquantizer_choose(&q, QTN_INT8, QTN_PER_TENSOR_SYMMETRIC, 0, &min, &max, 1, a));
  assert_int_equal(qquantizer_quant_min(q), -127);
  assert_true((float)(1 / qquantizer_scales(q)[0]) == 127.0f / 1.5f);
  assert_string_equal(qquantizer_numerics(q), "nvidia");
  qquantizer_free(q);
  FAILS(QTN_EINVAL, "-1.5", qquantizer_choose(&q, QTN_UINT8, QTN_PER_TENSOR_SYMMETRIC, 0, &min, &max, 1, a));
  FAILS(QTN_EUNSUPPORTED, "affine", qquantizer_choose(&q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, &min, &max, 1, a));
  FAILS(QTN_EUNSUPPORTED, "zero_point 3",
        qquantizer_create(&q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, &half, &three, 1, a));
  qattrs_free(a);
}

static void shapes(void **state) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  qtensor *x = FLOATS(values, DIMS(2, 3)), *y = NULL, *turned = NULL;
  const int32_t order[] = {1, 0};
  (void)state;
  OK(qtensor_reshape(&y, x, DIMS(3, -1)));
  assert_int_equal(qtensor_shape(y)[1], 2);
  assert_ptr_equal(qtensor_data(y), qtensor_data(x));
  qtensor_free(y);
  OK(qtensor_permute(&turned, x, order, 2));
  OK(qtensor_reshape(&y, turned, DIMS(6)));
  assert_true(((const float *)qtensor_data(y))[1] == 4);
  qtensor_free(y);
  FAILS(QTN_ESHAPE, "-1", qtensor_reshape(&y, x, DIMS(4, -1)));
  FAILS(QTN_ESHAPE, "negative", qtensor_reshape(&y, x, DIMS(-1, -1)));
  FAILS(QTN_ESHAPE, "6 elements", qtensor_reshape(&y, x, DIMS(7)));
  qtensor_free(x);
  qtensor_free(turned);
}

static void equality(void **state) {
  const float values[] = {1, 2, 3, 4}, other[] = {1, 2, 3, NAN};
  qtensor *x = FLOATS(values, DIMS(4)), *same = FLOATS(values, DIMS(4)), *z = FLOATS(other, DIMS(4));
  qtensor *a = NULL, *b = NULL, *c = NULL;
  qquantizer *fine = affine(QTN_INT8, 0.5, 0), *shifted = affine(QTN_INT8, 0.5, 1);
  int32_t is = 7;
  (void)state;
  OK(qtensor_equal(&is, x, same));
  assert_int_equal(is, 1);
  OK(qtensor_equal(&is, z, z));
  assert_int_equal(is, 0);
  OK(qtensor_quantize(&a, x, fine));
  OK(qtensor_quantize(&b, same, fine));
  OK(qtensor_quantize(&c, x, shifted));
  OK(qtensor_equal(&is, a, b));
  assert_int_equal(is, 1);
  OK(qtensor_equal(&is, a, c));
  assert_int_equal(is, 0);
  OK(qtensor_equal(&is, a, x));
  assert_int_equal(is, 0);
  FAILS(QTN_EINVAL, "b is NULL", qtensor_equal(&is, a, NULL));
  qtensor_free(x);
  qtensor_free(same);
  qtensor_free(z);
  qtensor_free(a);
  qtensor_free(b);
  qtensor_free(c);
  qquantizer_free(fine);
  qquantizer_free(shifted);
}

static void a_value_fills_a_row(void **state) {
  const float zeros[6] = {0}, value[] = {3.5f}, row[] = {1, 2, 3}, pair[] = {1, 2};
  const uint8_t want[] = {35, 35, 35, 10, 20, 30};
  qquantizer *grid = affine(QTN_UINT8, 0.1, 0);
  qtensor *x = FLOATS(zeros, DIMS(2, 3)), *q = NULL, *first = NULL, *second = NULL;
  qtensor *scalar = FLOATS(value, NULL, 0), *three = FLOATS(row, DIMS(3)), *two = FLOATS(pair, DIMS(2));
  (void)state;
  OK(qtensor_quantize(&q, x, grid));
  OK(qtensor_select(&first, q, 0, 0));
  OK(qtensor_select(&second, q, 0, 1));
  OK(qtensor_copy(first, scalar));
  OK(qtensor_copy(second, three));
  FAILS(QTN_ESHAPE, "src is 2", qtensor_copy(q, two));
  assert_memory_equal(qtensor_data(q), want, sizeof want);
  qquantizer_free(grid);
  qtensor_free(x);
  qtensor_free(q);
  qtensor_free(first);
  qtensor_free(second);
  qtensor_free(scalar);
  qtensor_free(three);
  qtensor_free(two);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(packed_int4_in_blocks),
                                     cmocka_unit_test(ranges),
                                     cmocka_unit_test(nvidia_is_symmetric),
                                     cmocka_unit_test(shapes),
                                     cmocka_unit_test(equality),
                                     cmocka_unit_test(a_value_fills_a_row)};
  return cmocka_run_group_tests_name("capi/grids", tests, NULL, NULL);
}
