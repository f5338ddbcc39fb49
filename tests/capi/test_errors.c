/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function: NULL where it must not be, outputs cleared, enumerations checked, messages. */
#include <pthread.h>

#include "check.h"

static const int64_t kShape[] = {2};
static const float kValues[] = {1, 2};

/* The call is QTN_EINVAL and says which parameter of which function is NULL. */
#define NULL_PARAMETER(function, parameter, ...) \
  check_status(function(__VA_ARGS__), QTN_EINVAL, #function ": " parameter " is NULL", #function, __FILE__, __LINE__)

static void null_in_tensor(void **state) {
  qtensor *t = NULL, *out = NULL;
  qquantizer *q = affine(QTN_UINT8, 0.1, 0);
  const int32_t axes[] = {0};
  void *data = NULL;
  float memory[2];
  double value = 0;
  size_t length = 0;
  (void)state;
  t = FLOATS(kValues, DIMS(2));
  NULL_PARAMETER(qtensor_create, "out", NULL, QTN_FLOAT32, kShape, 1, NULL, NULL, 0);
  NULL_PARAMETER(qtensor_create, "shape", &out, QTN_FLOAT32, NULL, 1, NULL, NULL, 0);
  NULL_PARAMETER(qtensor_wrap, "out", NULL, QTN_FLOAT32, kShape, 1, NULL, memory, sizeof memory, NULL, NULL);
  NULL_PARAMETER(qtensor_wrap, "shape", &out, QTN_FLOAT32, NULL, 1, NULL, memory, sizeof memory, NULL, NULL);
  NULL_PARAMETER(qtensor_wrap, "data", &out, QTN_FLOAT32, kShape, 1, NULL, NULL, sizeof memory, NULL, NULL);
  NULL_PARAMETER(qtensor_share, "out", NULL, t);
  NULL_PARAMETER(qtensor_share, "t", &out, NULL);
  NULL_PARAMETER(qtensor_data_mut, "out", NULL, t);
  NULL_PARAMETER(qtensor_data_mut, "t", &data, NULL);
  NULL_PARAMETER(qtensor_quantize, "out", NULL, t, q);
  NULL_PARAMETER(qtensor_quantize, "x", &out, NULL, q);
  NULL_PARAMETER(qtensor_quantize, "quantizer", &out, t, NULL);
  NULL_PARAMETER(qtensor_dequantize, "out", NULL, t);
  NULL_PARAMETER(qtensor_dequantize, "x", &out, NULL);
  NULL_PARAMETER(qtensor_select, "out", NULL, t, 0, 0);
  NULL_PARAMETER(qtensor_select, "t", &out, NULL, 0, 0);
  NULL_PARAMETER(qtensor_slice, "out", NULL, t, 0, 0, 1, 1);
  NULL_PARAMETER(qtensor_slice, "t", &out, NULL, 0, 0, 1, 1);
  NULL_PARAMETER(qtensor_permute, "out", NULL, t, axes, 1);
  NULL_PARAMETER(qtensor_permute, "t", &out, NULL, axes, 1);
  NULL_PARAMETER(qtensor_permute, "axes", &out, t, NULL, 1);
  NULL_PARAMETER(qtensor_contiguous, "out", NULL, t);
  NULL_PARAMETER(qtensor_contiguous, "t", &out, NULL);
  NULL_PARAMETER(qtensor_copy, "dst", NULL, t);
  NULL_PARAMETER(qtensor_copy, "src", t, NULL);
  NULL_PARAMETER(qtensor_item, "out", NULL, t);
  NULL_PARAMETER(qtensor_item, "t", &value, NULL);
  NULL_PARAMETER(qtensor_describe, "buf", NULL, 8, &length, t);
  NULL_PARAMETER(qtensor_describe, "out_len", NULL, 0, NULL, t);
  NULL_PARAMETER(qtensor_describe, "t", NULL, 0, &length, NULL);
  qtensor_free(t);
  qquantizer_free(q);
}

static void null_in_quantizer_and_attrs(void **state) {
  qquantizer *q = NULL;
  qattrs *a = NULL;
  const double one = 1, range[] = {0, 1};
  const int64_t number = 3;
  (void)state;
  NULL_PARAMETER(qquantizer_create, "out", NULL, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, &one, NULL, 1, NULL);
  NULL_PARAMETER(qquantizer_create, "scales", &q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, NULL, NULL, 1, NULL);
  NULL_PARAMETER(qquantizer_choose, "out", NULL, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, range, range, 1, NULL);
  NULL_PARAMETER(qquantizer_choose, "mins", &q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, NULL, range, 1, NULL);
  NULL_PARAMETER(qquantizer_choose, "maxs", &q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, range, NULL, 1, NULL);

  NULL_PARAMETER(qattrs_create, "out", NULL);
  OK(qattrs_create(&a));
  NULL_PARAMETER(qattrs_set_int, "a", NULL, "k", 1);
  NULL_PARAMETER(qattrs_set_int, "key", a, NULL, 1);
  NULL_PARAMETER(qattrs_set_float, "a", NULL, "k", 1);
  NULL_PARAMETER(qattrs_set_float, "key", a, NULL, 1);
  NULL_PARAMETER(qattrs_set_string, "a", NULL, "k", "v");
  NULL_PARAMETER(qattrs_set_string, "key", a, NULL, "v");
  NULL_PARAMETER(qattrs_set_string, "value", a, "k", NULL);
  NULL_PARAMETER(qattrs_set_ints, "a", NULL, "k", &number, 1);
  NULL_PARAMETER(qattrs_set_ints, "key", a, NULL, &number, 1);
  NULL_PARAMETER(qattrs_set_ints, "values", a, "k", NULL, 1);
  NULL_PARAMETER(qattrs_set_floats, "a", NULL, "k", &one, 1);
  NULL_PARAMETER(qattrs_set_floats, "key", a, NULL, &one, 1);
  NULL_PARAMETER(qattrs_set_floats, "values", a, "k", NULL, 1);
  OK(qattrs_set_ints(a, "k", NULL, 0));
  FAILS(QTN_EINVAL, "key is empty", qattrs_set_int(a, "", 1));
  qattrs_free(a);
}

static void null_in_observer_and_operators(void **state) {
  qobserver *o = NULL, *other = NULL;
  qquantizer *q = NULL;
  qblob *b = NULL;
  qtensor *t = NULL, *out = NULL;
  const qtensor *inputs[1];
  (void)state;
  t = FLOATS(kValues, DIMS(2));
  inputs[0] = t;
  NULL_PARAMETER(qobserver_create, "out", NULL, "minmax", NULL);
  NULL_PARAMETER(qobserver_create, "kind", &o, NULL, NULL);
  OK(qobserver_create(&o, "minmax", NULL));
  NULL_PARAMETER(qobserver_observe, "o", NULL, t);
  NULL_PARAMETER(qobserver_observe, "x", o, NULL);
  NULL_PARAMETER(qobserver_merge, "o", NULL, o);
  NULL_PARAMETER(qobserver_merge, "other", o, NULL);
  NULL_PARAMETER(qobserver_quantizer, "out", NULL, o);
  NULL_PARAMETER(qobserver_quantizer, "o", &q, NULL);
  NULL_PARAMETER(qobserver_save, "out", NULL, o);
  NULL_PARAMETER(qobserver_save, "o", &b, NULL);
  NULL_PARAMETER(qobserver_load, "out", NULL, "x", 1);
  NULL_PARAMETER(qobserver_load, "data", &other, NULL, 1);
  qobserver_free(o);

  NULL_PARAMETER(qop_run, "outputs", NULL, 1, "Relu", inputs, 1, NULL);
  NULL_PARAMETER(qop_run, "op", &out, 1, NULL, inputs, 1, NULL);
  NULL_PARAMETER(qop_run, "inputs", &out, 1, "Relu", NULL, 1, NULL);
  NULL_PARAMETER(qop_linear, "out", NULL, t, t, NULL, NULL);
  NULL_PARAMETER(qop_linear, "x", &out, NULL, t, NULL, NULL);
  NULL_PARAMETER(qop_linear, "weight", &out, t, NULL, NULL, NULL);
  NULL_PARAMETER(qop_conv2d, "out", NULL, t, t, NULL, NULL, NULL);
  NULL_PARAMETER(qop_conv2d, "x", &out, NULL, t, NULL, NULL, NULL);
  NULL_PARAMETER(qop_conv2d, "weight", &out, t, NULL, NULL, NULL, NULL);
  qtensor_free(t);
}

static void null_in_accessors(void **state) {
  (void)state;
  assert_int_equal(qtensor_dtype(NULL), 0);
  assert_int_equal(qtensor_rank(NULL), 0);
  assert_null(qtensor_shape(NULL));
  assert_null(qtensor_strides(NULL));
  assert_int_equal(qtensor_nbytes(NULL), 0);
  assert_null(qtensor_quantizer(NULL));
  assert_null(qtensor_data(NULL));
  assert_int_equal(qquantizer_dtype(NULL), 0);
  assert_int_equal(qquantizer_scheme(NULL), 0);
  assert_int_equal(qquantizer_axis(NULL), 0);
  assert_int_equal(qquantizer_count(NULL), 0);
  assert_null(qquantizer_scales(NULL));
  assert_null(qquantizer_zero_points(NULL));
  assert_int_equal(qmodel_input_count(NULL), 0);
  assert_null(qmodel_input_name(NULL, 0));
  assert_null(qmodel_tensor_name(NULL, 0));
  assert_int_equal(qmodel_tensor_count(NULL), 0);
  assert_int_equal(qmodel_input_dtype(NULL, 0), 0);
  assert_int_equal(qmodel_input_rank(NULL, 0), 0);
  assert_null(qmodel_input_shape(NULL, 0));
  assert_int_equal(qmodel_output_count(NULL), 0);
  assert_null(qmodel_output_name(NULL, 0));
  assert_null(qblob_data(NULL));
  assert_int_equal(qblob_size(NULL), 0);
  qtensor_free(NULL);
  qquantizer_free(NULL);
  qattrs_free(NULL);
  qobserver_free(NULL);
  qconfig_free(NULL);
  qmodel_free(NULL);
  qsession_free(NULL);
  qblob_free(NULL);
}

static void outputs_are_cleared(void **state) {
  qtensor *garbage = (qtensor *)(uintptr_t)0x5555, *outputs[2];
  qquantizer *q = (qquantizer *)(uintptr_t)0x5555;
  qmodel *m = (qmodel *)(uintptr_t)0x5555;
  double value = 7;
  size_t length = 7;
  char text[4] = "abc";
  (void)state;
  outputs[0] = outputs[1] = garbage;
  assert_int_equal(qtensor_share(&garbage, NULL), QTN_EINVAL);
  assert_null(garbage);
  assert_int_equal(qop_run(outputs, 2, NULL, NULL, 0, NULL), QTN_EINVAL);
  assert_null(outputs[0]);
  assert_null(outputs[1]);
  assert_int_equal(qquantizer_create(&q, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, NULL, NULL, 1, NULL), QTN_EINVAL);
  assert_null(q);
  assert_int_equal(qmodel_load(&m, "/nonexistent/model.onnx"), QTN_EIO);
  assert_null(m);
  assert_int_equal(qtensor_item(&value, NULL), QTN_EINVAL);
  assert_true(value == 0);
  assert_int_equal(qtensor_describe(text, sizeof text, &length, NULL), QTN_EINVAL);
  assert_int_equal(length, 0);
  assert_string_equal(text, "");
}

static void unknown_enumerations(void **state) {
  qtensor *t = NULL;
  qquantizer *q = NULL;
  const double one = 1;
  (void)state;
  FAILS(QTN_EINVAL, "dtype 99", qtensor_create(&t, (qdtype)99, kShape, 1, NULL, NULL, 0));
  FAILS(QTN_EINVAL, "dtype", qtensor_create(&t, QTN_DTYPE_FORCE32, kShape, 1, NULL, NULL, 0));
  FAILS(QTN_EINVAL, "nbytes is 3", qtensor_create(&t, QTN_INT4, kShape, 1, NULL, &one, 3));
  FAILS(QTN_EINVAL, "dtype 99", qquantizer_create(&q, (qdtype)99, QTN_PER_TENSOR_AFFINE, 0, &one, NULL, 1, NULL));
  FAILS(QTN_EINVAL, "scheme 7", qquantizer_create(&q, QTN_INT8, (qscheme)7, 0, &one, NULL, 1, NULL));
  FAILS(QTN_EINVAL, "block size 0", qquantizer_create(&q, QTN_INT8, QTN_PER_BLOCK_AFFINE, 0, &one, NULL, 1, NULL));
  FAILS(QTN_EINVAL, "block size 0", qquantizer_choose(&q, QTN_INT8, QTN_PER_BLOCK_SYMMETRIC, 0, &one, &one, 1, NULL));
  FAILS(QTN_EDTYPE, "float32", qquantizer_create(&q, QTN_FLOAT32, QTN_PER_TENSOR_AFFINE, 0, &one, NULL, 1, NULL));
}

static void names(void **state) {
  (void)state;
  assert_string_equal(qstatus_name(QTN_OK), "QTN_OK");
  assert_string_equal(qstatus_name(QTN_ECANCELED), "QTN_ECANCELED");
  assert_string_equal(qstatus_name((qstatus)99), "QTN_?");
  assert_string_equal(qdtype_name(QTN_UINT8), "uint8");
  assert_string_equal(qdtype_name(QTN_FLOAT32), "float32");
  assert_string_equal(qdtype_name((qdtype)99), "?");
  assert_int_equal(qlib_version(), QTN_VERSION_MAJOR << 16 | QTN_VERSION_MINOR << 8 | QTN_VERSION_PATCH);
}

static void library_settings(void **state) {
  char before[32];
  (void)state;
  strncpy(before, qlib_isa(), sizeof before - 1);
  before[sizeof before - 1] = '\0';
  NULL_PARAMETER(qlib_set_isa, "isa", NULL);
  FAILS(QTN_EINVAL, "mmx", qlib_set_isa("mmx"));
  OK(qlib_set_isa("scalar"));
  assert_string_equal(qlib_isa(), "scalar");
  OK(qlib_set_isa(before));
  assert_string_equal(qlib_isa(), before);
  FAILS(QTN_EINVAL, "-1", qlib_set_threads(-1));
  FAILS(QTN_EINVAL, "1025", qlib_set_threads(1025));
  OK(qlib_set_threads(2));
  OK(qlib_set_threads(0));
}

static void *message_of_new_thread(void *result) {
  qtensor *t = NULL;
  char *text = result;
  text[0] = *qerror_message() ? '!' : '-';
  if (qtensor_share(&t, NULL) != QTN_OK) strncpy(text + 1, qerror_message(), 62);
  return NULL;
}

static void message_is_bounded(void **state) {
  qmodel *m = NULL;
  char path[3000], earlier[1024];
  size_t i;
  qtensor *t = NULL;
  (void)state;
  for (i = 0; i + 1 < sizeof path; ++i) path[i] = i % 2 ? '\xa9' : '\xc3'; /* two-byte characters */
  path[sizeof path - 1] = '\0';
  assert_int_not_equal(qmodel_load(&m, path), QTN_OK);
  assert_in_range(strlen(qerror_message()), 1000, 1023);
  assert_int_equal((unsigned char)qerror_message()[strlen(qerror_message()) - 1], 0xa9); /* whole at the end */

  assert_int_not_equal(qmodel_load(&m, "two\nlines"), QTN_OK);
  assert_null(strchr(qerror_message(), '\n'));

  strcpy(earlier, qerror_message());
  t = FLOATS(kValues, DIMS(2));
  assert_string_equal(qerror_message(), earlier); /* a success leaves the message */
  qtensor_free(t);
}

static void message_is_of_the_thread(void **state) {
  pthread_t thread;
  char text[64] = {0};
  (void)state;
  assert_int_equal(qtensor_share(NULL, NULL), QTN_EINVAL);
  assert_int_equal(pthread_create(&thread, NULL, message_of_new_thread, text), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_string_equal(text, "-qtensor_share: t is NULL");
  assert_string_equal(qerror_message(), "qtensor_share: out is NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(null_in_tensor),
      cmocka_unit_test(null_in_quantizer_and_attrs),
      cmocka_unit_test(null_in_observer_and_operators),
      cmocka_unit_test(null_in_accessors),
      cmocka_unit_test(outputs_are_cleared),
      cmocka_unit_test(unknown_enumerations),
      cmocka_unit_test(names),
      cmocka_unit_test(library_settings),
      cmocka_unit_test(message_is_bounded),
      cmocka_unit_test(message_is_of_the_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
