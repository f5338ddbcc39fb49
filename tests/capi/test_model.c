/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a model: load, prepare, calibrate, convert, save, run; and everything done at the wrong time. */
#include <math.h>
#include <unistd.h>

#include "check.h"
#include "tiny_model.h"

static qmodel *load_tiny(void) {
  tiny_model bytes;
  qmodel *m = NULL;
  tiny_model_make(&bytes);
  OK(qmodel_load_bytes(&m, bytes.data, bytes.size));
  return m;
}

static qtensor *sample(int i) {
  float values[TINY_INPUTS];
  tiny_sample(values, i);
  return FLOATS(values, DIMS(1, 1, 6, 6));
}

static qmodel *prepare(const qmodel *m, const char *recipe) {
  qconfig *config = NULL;
  qmodel *prepared = NULL;
  OK(qconfig_create(&config, recipe));
  OK(qmodel_prepare(&prepared, m, config, QTN_PTQ));
  qconfig_free(config);
  return prepared;
}

static void calibrate(qmodel *prepared, int samples) {
  int i;
  for (i = 0; i < samples; ++i) {
    qtensor *x = sample(i);
    const qtensor *inputs[] = {x};
    OK(qmodel_calibrate(prepared, inputs, 1));
    qtensor_free(x);
  }
}

static qmodel *quantize(const qmodel *m, const char *recipe) {
  qmodel *prepared = prepare(m, recipe), *int8 = NULL;
  calibrate(prepared, 8);
  OK(qmodel_convert(&int8, prepared, NULL));
  qmodel_free(prepared);
  return int8;
}

static qsession *session_of(const qmodel *m, const char *engine) {
  qsession *s = NULL;
  qattrs *a = NULL;
  OK(qattrs_create(&a));
  OK(qattrs_set_string(a, "engine", engine));
  OK(qattrs_set_int(a, "threads", 2));
  OK(qsession_create(&s, m, a));
  qattrs_free(a);
  return s;
}

static qtensor *run(const qsession *s, int i) {
  qtensor *x = sample(i), *y = NULL;
  const qtensor *inputs[] = {x};
  OK(qsession_run(&y, 1, s, inputs, 1));
  qtensor_free(x);
  return y;
}

static void describe_inputs(void **state) {
  qmodel *m = load_tiny();
  const int64_t *shape;
  (void)state;
  assert_int_equal(qmodel_input_count(m), 1);
  assert_int_equal(qmodel_output_count(m), 1);
  assert_string_equal(qmodel_input_name(m, 0), "x");
  assert_string_equal(qmodel_output_name(m, 0), "y");
  assert_null(qmodel_input_name(m, 1));
  assert_null(qmodel_tensor_name(m, qmodel_tensor_count(m)));
  assert_null(qmodel_output_name(m, 1));
  assert_int_equal(qmodel_input_dtype(m, 0), QTN_FLOAT32);
  assert_int_equal(qmodel_input_rank(m, 0), 4);
  shape = qmodel_input_shape(m, 0);
  assert_int_equal(shape[0], -1);
  assert_int_equal(shape[1], 1);
  assert_int_equal(shape[3], 6);
  assert_null(qmodel_input_shape(m, 1));
  qmodel_free(m);
}

static void float_model_runs(void **state) {
  qmodel *m = load_tiny();
  qsession *native = session_of(m, "native"), *reference = session_of(m, "reference");
  int i;
  (void)state;
  for (i = 0; i < 3; ++i) {
    qtensor *a = run(native, i), *b = run(reference, i);
    check_shape(a, DIMS(1, TINY_OUTPUTS));
    check_floats(a, qtensor_data(b), TINY_OUTPUTS, 1e-5f);
    qtensor_free(a);
    qtensor_free(b);
  }
  qsession_free(native);
  qsession_free(reference);
  qmodel_free(m);
}

static void quantized_model_runs(void **state) {
  static const char *const recipes[] = {"onnx", "fbgemm"};
  size_t r;
  int i;
  (void)state;
  for (r = 0; r < COUNT(recipes); ++r) {
    qmodel *m = load_tiny(), *int8 = quantize(m, recipes[r]);
    qsession *before = session_of(m, "native"), *native = session_of(int8, "native");
    qsession *reference = session_of(int8, "reference");
    qmodel_free(m);
    qmodel_free(int8); /* sessions go on */
    for (i = 0; i < 8; ++i) {
      qtensor *f = run(before, i), *a = run(native, i), *b = run(reference, i);
      check_floats(a, qtensor_data(f), TINY_OUTPUTS, 0.03f);
      check_floats(a, qtensor_data(b), TINY_OUTPUTS, 0.01f);
      qtensor_free(f);
      qtensor_free(a);
      qtensor_free(b);
    }
    qsession_free(before);
    qsession_free(native);
    qsession_free(reference);
  }
}

static void saved_model_runs_alike(void **state) {
  char path[] = "/tmp/qtensor-test-XXXXXX";
  const int file = mkstemp(path);
  qmodel *m = load_tiny(), *int8 = quantize(m, "onnx"), *loaded = NULL;
  qsession *a = session_of(int8, "native"), *b = NULL;
  int i;
  (void)state;
  assert_true(file >= 0);
  close(file);
  OK(qmodel_save(int8, path, NULL));
  OK(qmodel_load(&loaded, path));
  b = session_of(loaded, "native");
  for (i = 0; i < 4; ++i) {
    qtensor *y = run(a, i), *z = run(b, i);
    assert_memory_equal(qtensor_data(y), qtensor_data(z), TINY_OUTPUTS * sizeof(float));
    qtensor_free(y);
    qtensor_free(z);
  }
  OK(qmodel_save(m, path, NULL));
  qmodel_free(loaded);
  OK(qmodel_load(&loaded, path));
  remove(path);
  qsession_free(a);
  qsession_free(b);
  qmodel_free(m);
  qmodel_free(int8);
  qmodel_free(loaded);
}

static void batches(void **state) {
  float values[5 * TINY_INPUTS];
  qmodel *m = load_tiny(), *int8 = quantize(m, "onnx");
  qsession *s = session_of(int8, "native");
  qtensor *x = NULL, *y = NULL;
  const qtensor *inputs[1];
  int i;
  (void)state;
  for (i = 0; i < 5; ++i) tiny_sample(values + i * TINY_INPUTS, i);
  inputs[0] = x = FLOATS(values, DIMS(5, 1, 6, 6));
  OK(qsession_run(&y, 1, s, inputs, 1));
  check_shape(y, DIMS(5, TINY_OUTPUTS));
  for (i = 0; i < 5; ++i) {
    qtensor *one = run(s, i);
    assert_memory_equal((const float *)qtensor_data(y) + i * TINY_OUTPUTS, qtensor_data(one),
                        TINY_OUTPUTS * sizeof(float));
    qtensor_free(one);
  }
  qtensor_free(x);
  qtensor_free(y);
  qsession_free(s);
  qmodel_free(m);
  qmodel_free(int8);
}

static void texts(void **state) {
  qmodel *m = load_tiny(), *int8 = quantize(m, "onnx");
  qsession *s = session_of(int8, "native");
  qtensor *x = sample(0);
  const qtensor *inputs[] = {x};
  qblob *b = NULL;
  (void)state;
  OK(qmodel_inspect(&b, int8));
  assert_non_null(strstr(qblob_data(b), "\"nodes\""));
  assert_non_null(strstr(qblob_data(b), "\"int8\""));
  assert_int_equal(strlen(qblob_data(b)), qblob_size(b));
  qblob_free(b);
  OK(qsession_profile(&b, s, inputs, 1));
  assert_non_null(strstr(qblob_data(b), "\"kernel\""));
  assert_int_equal(strlen(qblob_data(b)), qblob_size(b));
  qblob_free(b);
  FAILS(QTN_EINVAL, "out is NULL", qmodel_inspect(NULL, m));
  FAILS(QTN_EINVAL, "m is NULL", qmodel_inspect(&b, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qsession_profile(NULL, s, inputs, 1));
  FAILS(QTN_EINVAL, "s is NULL", qsession_profile(&b, NULL, inputs, 1));
  FAILS(QTN_EINVAL, "input_count is 0", qsession_profile(&b, s, inputs, 0));
  qtensor_free(x);
  qsession_free(s);
  qmodel_free(m);
  qmodel_free(int8);
}

static void wrong_time(void **state) {
  qmodel *m = load_tiny(), *prepared = prepare(m, "onnx"), *int8 = quantize(m, "onnx"), *out = NULL;
  qconfig *config = NULL;
  qsession *s = NULL;
  qtensor *x = sample(0);
  const qtensor *inputs[] = {x};
  (void)state;
  OK(qconfig_create(&config, "onnx"));
  FAILS(QTN_ESTATE, "", qmodel_convert(&out, prepared, NULL));
  FAILS(QTN_ESTATE, "", qmodel_convert(&out, m, NULL));
  FAILS(QTN_ESTATE, "", qmodel_calibrate(m, inputs, 1));
  FAILS(QTN_ESTATE, "", qmodel_prepare(&out, prepared, config, QTN_PTQ));
  FAILS(QTN_EUNSUPPORTED, "", qmodel_prepare(&out, int8, config, QTN_PTQ));
  FAILS(QTN_ESTATE, "", qsession_create(&s, prepared, NULL));
  FAILS(QTN_ESTATE, "", qmodel_save(prepared, "/nonexistent/x.onnx", NULL));
  FAILS(QTN_EINVAL, "mode 5", qmodel_prepare(&out, m, config, (qmode)5));
  qconfig_free(config);
  qtensor_free(x);
  qmodel_free(m);
  qmodel_free(prepared);
  qmodel_free(int8);
}

static void wrong_inputs(void **state) {
  float values[TINY_INPUTS];
  qmodel *m = load_tiny(), *prepared = prepare(m, "onnx"), *int8 = quantize(m, "onnx");
  qsession *s = session_of(int8, "native");
  qtensor *x = sample(0), *small = NULL, *ints = NULL, *nan = NULL, *y[2] = {NULL, NULL};
  const qtensor *inputs[2] = {x, x}, *none[1] = {NULL};
  (void)state;
  OK(qtensor_create(&small, QTN_FLOAT32, DIMS(1, 1, 5, 6), NULL, NULL, 0));
  OK(qtensor_create(&ints, QTN_INT64, DIMS(1, 1, 6, 6), NULL, NULL, 0));
  tiny_sample(values, 0);
  values[7] = NAN;
  nan = FLOATS(values, DIMS(1, 1, 6, 6));
  FAILS(QTN_EINVAL, "input_count is 2", qsession_run(y, 1, s, inputs, 2));
  FAILS(QTN_EINVAL, "output_count is 2", qsession_run(y, 2, s, inputs, 1));
  FAILS(QTN_EINVAL, "inputs[0] is NULL", qsession_run(y, 1, s, none, 1));
  FAILS(QTN_EINVAL, "inputs is NULL", qsession_run(y, 1, s, NULL, 1));
  FAILS(QTN_EINVAL, "outputs is NULL", qsession_run(NULL, 1, s, inputs, 1));
  FAILS(QTN_EINVAL, "s is NULL", qsession_run(y, 1, NULL, inputs, 1));
  FAILS(QTN_EINVAL, "input_count is 0", qmodel_calibrate(prepared, inputs, 0));
  FAILS(QTN_EINVAL, "prepared is NULL", qmodel_calibrate(NULL, inputs, 1));
  inputs[0] = small;
  FAILS(QTN_ESHAPE, "1x1x5x6", qsession_run(y, 1, s, inputs, 1));
  FAILS(QTN_ESHAPE, "1x1x5x6", qmodel_calibrate(prepared, inputs, 1));
  inputs[0] = ints;
  FAILS(QTN_EDTYPE, "int64", qsession_run(y, 1, s, inputs, 1));
  FAILS(QTN_EDTYPE, "int64", qmodel_calibrate(prepared, inputs, 1));
  inputs[0] = nan;
  FAILS(QTN_EINVAL, "nan", qmodel_calibrate(prepared, inputs, 1));
  assert_non_null(strstr(qerror_message(), "x"));
  qtensor_free(x);
  qtensor_free(small);
  qtensor_free(ints);
  qtensor_free(nan);
  qsession_free(s);
  qmodel_free(m);
  qmodel_free(prepared);
  qmodel_free(int8);
}

static void wrong_settings(void **state) {
  qmodel *m = load_tiny(), *out = NULL;
  qconfig *config = NULL;
  qsession *s = NULL;
  qattrs *a = NULL;
  (void)state;
  FAILS(QTN_EUNSUPPORTED, "onnx", qconfig_create(&config, "gpu"));
  FAILS(QTN_EINVAL, "name is NULL", qconfig_create(&config, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qconfig_create(NULL, "onnx"));
  OK(qconfig_create(&config, "onnx"));
  OK(qattrs_create(&a));
  OK(qattrs_set_string(a, "colour", "red"));
  FAILS(QTN_EINVAL, "colour", qconfig_set(config, "*", a));
  FAILS(QTN_EINVAL, "somewhere", qconfig_set(config, "somewhere", NULL));
  FAILS(QTN_EINVAL, "c is NULL", qconfig_set(NULL, "*", NULL));
  FAILS(QTN_EINVAL, "selector is NULL", qconfig_set(config, NULL, NULL));
  FAILS(QTN_EINVAL, "engine", qsession_create(&s, m, a));
  FAILS(QTN_EINVAL, "format", qmodel_save(m, "/nonexistent/x.onnx", a));
  qattrs_free(a);
  OK(qattrs_create(&a));
  OK(qattrs_set_string(a, "engine", "steam"));
  FAILS(QTN_EINVAL, "steam", qsession_create(&s, m, a));
  OK(qattrs_set_string(a, "engine", "native"));
  OK(qattrs_set_int(a, "threads", -1));
  FAILS(QTN_EINVAL, "threads is -1", qsession_create(&s, m, a));
  FAILS(QTN_EINVAL, "m is NULL", qsession_create(&s, NULL, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qsession_create(NULL, m, NULL));
  qattrs_free(a);
  OK(qattrs_create(&a));
  OK(qattrs_set_string(a, "format", "xml"));
  FAILS(QTN_EINVAL, "\"xml\" is unknown; known are qdq qoperator", qmodel_save(m, "/nonexistent/x.onnx", a));
  OK(qattrs_set_string(a, "format", "qoperator"));
  OK(qattrs_set_int(a, "opset", 12));
  FAILS(QTN_EINVAL, "opset is 12", qmodel_save(m, "/nonexistent/x.onnx", a));
  OK(qattrs_set_int(a, "opset", 17));
  FAILS(QTN_EIO, "/nonexistent", qmodel_save(m, "/nonexistent/x.onnx", a));
  FAILS(QTN_EINVAL, "path is NULL", qmodel_save(m, NULL, NULL));
  FAILS(QTN_EINVAL, "m is NULL", qmodel_save(NULL, "x", NULL));
  FAILS(QTN_EINVAL, "config is NULL", qmodel_prepare(&out, m, NULL, QTN_PTQ));
  FAILS(QTN_EINVAL, "m is NULL", qmodel_prepare(&out, NULL, config, QTN_PTQ));
  FAILS(QTN_EINVAL, "out is NULL", qmodel_prepare(NULL, m, config, QTN_PTQ));
  FAILS(QTN_EINVAL, "prepared is NULL", qmodel_convert(&out, NULL, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qmodel_convert(NULL, m, NULL));
  qattrs_free(a);
  qconfig_free(config);
  qmodel_free(m);
}

static void left_in_float(void **state) {
  qmodel *m = load_tiny(), *prepared = NULL, *int8 = NULL;
  qconfig *config = NULL;
  qblob *b = NULL;
  (void)state;
  OK(qconfig_create(&config, "onnx"));
  OK(qconfig_set(config, "op:Conv", NULL));
  OK(qmodel_prepare(&prepared, m, config, QTN_PTQ));
  calibrate(prepared, 4);
  OK(qmodel_convert(&int8, prepared, NULL));
  OK(qmodel_inspect(&b, int8));
  assert_non_null(strstr(strstr(qblob_data(b), "\"float_nodes\""), "\"conv\""));
  qblob_free(b);
  qconfig_free(config);
  qmodel_free(m);
  qmodel_free(prepared);
  qmodel_free(int8);
}

/** How often these bytes are in the file. */
static size_t count_of(const qblob *file, const char *bytes, size_t size) {
  const char *data = qblob_data(file);
  size_t i, count = 0;
  for (i = 0; i + size <= qblob_size(file); ++i) count += memcmp(data + i, bytes, size) == 0;
  return count;
}

/** A pair for x and for what Relu, GlobalAveragePool and Flatten make; two weights and two biases are integers. The
 * names of operators have their lengths in front, opset_import is the domain "" and the number. */
static void a_file_has_pairs(void **state) {
  static const char opsets[] = {13, 21, 25};
  qmodel *m = load_tiny(), *int8 = quantize(m, "onnx");
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(opsets); ++i) {
    const char import[] = {'B', 4, '\n', 0, 16, opsets[i]};
    qattrs *a = NULL;
    qblob *file = NULL;
    OK(qattrs_create(&a));
    OK(qattrs_set_int(a, "opset", opsets[i]));
    OK(qmodel_save_bytes(&file, int8, a));
    assert_int_equal(count_of(file, "\16QuantizeLinear", 15), 4);
    assert_int_equal(count_of(file, "\20DequantizeLinear", 17), 8);
    assert_int_equal(count_of(file, "QLinear", 7), 0);
    assert_int_equal(count_of(file, import, sizeof import), 1);
    qblob_free(file);
    OK(qattrs_set_string(a, "format", "qoperator"));
    OK(qmodel_save_bytes(&file, int8, a));
    assert_int_equal(count_of(file, "\16QuantizeLinear", 15), 1);
    assert_int_equal(count_of(file, "\13QLinearConv", 12), 1);
    assert_int_equal(count_of(file, import, sizeof import), 1);
    qblob_free(file);
    qattrs_free(a);
  }
  qmodel_free(int8);
  qmodel_free(m);
}

static void bad_files(void **state) {
  tiny_model bytes;
  qmodel *m = NULL;
  size_t cut;
  (void)state;
  FAILS(QTN_EIO, "/nonexistent.onnx", qmodel_load(&m, "/nonexistent.onnx"));
  FAILS(QTN_EIO, "/tmp", qmodel_load(&m, "/tmp"));
  FAILS(QTN_EINVAL, "path is NULL", qmodel_load(&m, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qmodel_load(NULL, "x"));
  FAILS(QTN_EINVAL, "data is NULL", qmodel_load_bytes(&m, NULL, 3));
  FAILS(QTN_EINVAL, "out is NULL", qmodel_load_bytes(NULL, "abc", 3));
  FAILS(QTN_EFORMAT, "", qmodel_load_bytes(&m, "", 0));
  FAILS(QTN_EFORMAT, "", qmodel_load_bytes(&m, "not an onnx file", 16));
  tiny_model_make(&bytes);
  for (cut = 0; cut < bytes.size; ++cut) {
    const qstatus status = qmodel_load_bytes(&m, bytes.data, cut);
    assert_int_not_equal(status, QTN_EINTERNAL);
    assert_int_not_equal(status, QTN_ENOMEM);
    qmodel_free(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(describe_inputs),
      cmocka_unit_test(float_model_runs),
      cmocka_unit_test(quantized_model_runs),
      cmocka_unit_test(saved_model_runs_alike),
      cmocka_unit_test(batches),
      cmocka_unit_test(texts),
      cmocka_unit_test(wrong_time),
      cmocka_unit_test(wrong_inputs),
      cmocka_unit_test(wrong_settings),
      cmocka_unit_test(left_in_float),
      cmocka_unit_test(a_file_has_pairs),
      cmocka_unit_test(bad_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
