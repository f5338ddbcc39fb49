/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the C API share: cmocka, checks of a status and its message, short ways to make tensors. */
#ifndef QTN_TESTS_CAPI_CHECK_H
#define QTN_TESTS_CAPI_CHECK_H

/* cmocka.h comes last: it uses what the others declare. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
/* clang-format on */

#include "qtensor/qtensor.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, COUNT(((const int64_t[]){__VA_ARGS__}))

/** The call succeeds. */
#define OK(call) check_status((call), QTN_OK, "", #call, __FILE__, __LINE__)

/** The call fails with that status and a one-line message that contains the text. */
#define FAILS(status, text, call) check_status((call), (status), (text), #call, __FILE__, __LINE__)

static inline void check_status(qstatus got, qstatus wanted, const char *text, const char *call, const char *file,
                                int line) {
  const char *message = qerror_message();
  int right = got == wanted;
  if (right && wanted != QTN_OK) right = strstr(message, text) != NULL && strchr(message, '\n') == NULL && *message;
  if (right) return;
  print_error("%s\n  is %s \"%s\"\n  not %s \"%s\"\n", call, qstatus_name(got), got == QTN_OK ? "" : message,
              qstatus_name(wanted), text);
  _fail(file, line);
}

static inline qtensor *tensor_of(qdtype dtype, const qquantizer *quantizer, const void *data, size_t nbytes,
                                 const int64_t *shape, size_t rank) {
  qtensor *t = NULL;
  OK(qtensor_create(&t, dtype, shape, rank, quantizer, data, nbytes));
  return t;
}

/** A float32 tensor from an array: FLOATS(values, DIMS(2, 3)). */
#define FLOATS(values, ...) tensor_of(QTN_FLOAT32, NULL, (values), sizeof(values), __VA_ARGS__)

static inline qquantizer *affine(qdtype dtype, double scale, int64_t zero_point) {
  qquantizer *q = NULL;
  OK(qquantizer_create(&q, dtype, QTN_PER_TENSOR_AFFINE, 0, &scale, &zero_point, 1, NULL));
  return q;
}

static inline qquantizer *affine_onnx(qdtype dtype, double scale, int64_t zero_point) {
  qquantizer *q = NULL;
  qattrs *attrs = NULL;
  OK(qattrs_create(&attrs));
  OK(qattrs_set_string(attrs, "numerics", "onnx"));
  OK(qquantizer_create(&q, dtype, QTN_PER_TENSOR_AFFINE, 0, &scale, &zero_point, 1, attrs));
  qattrs_free(attrs);
  return q;
}

/** Element i, in row-major order, of a row-major float32 tensor. */
static inline float float_at(const qtensor *t, size_t i) { return ((const float *)qtensor_data(t))[i]; }

static inline void check_floats(const qtensor *t, const float *wanted, size_t count, float tolerance) {
  size_t i;
  assert_int_equal(qtensor_dtype(t), QTN_FLOAT32);
  assert_int_equal(qtensor_nbytes(t), count * sizeof *wanted);
  for (i = 0; i < count; ++i) assert_float_equal(float_at(t, i), wanted[i], tolerance);
}

/** Dimensions of a tensor. */
static inline void check_shape(const qtensor *t, const int64_t *shape, size_t rank) {
  assert_int_equal(qtensor_rank(t), rank);
  assert_memory_equal(qtensor_shape(t), shape, rank * sizeof *shape);
}

#endif
