/* SPDX-License-Identifier: Apache-2.0
 *
 * Calibration apart from its model, and all of quantization in one call. */
#include <math.h>
#include <unistd.h>

#include "check.h"
#include "tiny_model.h"

enum { SAMPLES = 8 };

static char folder[] = "/tmp/qtensor-test-XXXXXX";

enum { FIRST, SECOND, ALL, INT8, TEXT, NOTHING, FILES };
static const char *const kNames[FILES] = {"a.qcal", "b.qcal", "all.qcal", "int8.onnx", "text.qcal", "nothing.qcal"};
static char paths[FILES][64];

static int make_folder(void **state) {
  size_t i;
  (void)state;
  if (!mkdtemp(folder)) return 1;
  for (i = 0; i < FILES; ++i) snprintf(paths[i], sizeof paths[i], "%s/%s", folder, kNames[i]);
  return 0;
}

static int remove_folder(void **state) {
  size_t i;
  (void)state;
  for (i = 0; i < FILES; ++i) remove(paths[i]);
  return rmdir(folder);
}

static qmodel *load_tiny(void) {
  tiny_model bytes;
  qmodel *m = NULL;
  tiny_model_make(&bytes);
  OK(qmodel_load_bytes(&m, bytes.data, bytes.size));
  return m;
}

static qtensor *sample(size_t i) {
  float values[TINY_INPUTS];
  tiny_sample(values, (int)i);
  return FLOATS(values, DIMS(1, 1, 6, 6));
}

static qmodel *prepare(const char *recipe) {
  qmodel *m = load_tiny(), *prepared = NULL;
  qconfig *config = NULL;
  OK(qconfig_create(&config, recipe));
  OK(qmodel_prepare(&prepared, m, config, QTN_PTQ));
  qconfig_free(config);
  qmodel_free(m);
  return prepared;
}

static void calibrate(qmodel *prepared, size_t begin, size_t end) {
  for (; begin < end; ++begin) {
    qtensor *x = sample(begin);
    const qtensor *inputs[] = {x};
    OK(qmodel_calibrate(prepared, inputs, 1));
    qtensor_free(x);
  }
}

/** What a model is, down to the bit: the file that is written of it. Frees the model. */
typedef struct file_bytes {
  unsigned char data[8192];
  size_t size;
} file_bytes;

static void read_bytes(file_bytes *bytes, const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  bytes->size = fread(bytes->data, 1, sizeof bytes->data, file);
  assert_in_range(bytes->size, 1, sizeof bytes->data - 1);
  fclose(file);
}

static void bytes_of(file_bytes *bytes, qmodel *m) {
  OK(qmodel_save(m, paths[INT8], NULL));
  qmodel_free(m);
  read_bytes(bytes, paths[INT8]);
}

static void converted_bytes(file_bytes *bytes, const qmodel *prepared) {
  qmodel *int8 = NULL;
  OK(qmodel_convert(&int8, prepared, NULL));
  bytes_of(bytes, int8);
}

static void check_same(const file_bytes *a, const file_bytes *b) {
  assert_int_equal(a->size, b->size);
  assert_memory_equal(a->data, b->data, a->size);
}

static void shares_add_up(void **state) {
  qmodel *whole = prepare("onnx"), *first = prepare("onnx"), *second = prepare("onnx"), *sum = prepare("onnx");
  const char *parts[] = {paths[FIRST], paths[SECOND]};
  file_bytes want, got, other;
  (void)state;
  calibrate(whole, 0, SAMPLES);
  calibrate(first, 0, 3);
  calibrate(second, 3, SAMPLES);
  converted_bytes(&want, whole);
  converted_bytes(&other, first);
  assert_true(other.size != want.size || memcmp(other.data, want.data, want.size) != 0);
  OK(qmodel_save_calibration(first, parts[0]));
  OK(qmodel_save_calibration(second, parts[1]));
  OK(qmodel_load_calibration(sum, parts[0]));
  OK(qmodel_load_calibration(sum, parts[1]));
  converted_bytes(&got, sum);
  check_same(&got, &want);

  OK(qmodel_load_calibration(first, parts[1])); /* to what it has seen itself */
  converted_bytes(&got, first);
  check_same(&got, &want);

  OK(qmodel_merge_calibrations(paths[ALL], parts, COUNT(parts)));
  OK(qmodel_save_calibration(whole, parts[0]));
  read_bytes(&got, paths[ALL]);
  read_bytes(&want, parts[0]);
  check_same(&got, &want);
  qmodel_free(whole);
  qmodel_free(first);
  qmodel_free(second);
  qmodel_free(sum);
}

static void files_that_do_not_belong(void **state) {
  qmodel *m = load_tiny(), *prepared = prepare("onnx"), *other = prepare("fbgemm"), *out = NULL;
  const char *parts[] = {paths[FIRST], paths[SECOND]}, *none[] = {NULL};
  FILE *text = fopen(paths[TEXT], "w");
  file_bytes before, after;
  (void)state;
  remove(paths[ALL]);
  fputs("no calibration", text);
  fclose(text);
  calibrate(prepared, 0, 2);
  calibrate(other, 0, 2);
  converted_bytes(&before, prepared);
  OK(qmodel_save_calibration(prepared, parts[0]));
  OK(qmodel_save_calibration(other, parts[1]));
  FAILS(QTN_EINVAL, "b.qcal is of config \"fbgemm\"", qmodel_load_calibration(prepared, parts[1]));
  FAILS(QTN_EINVAL, "b.qcal is of config \"fbgemm\"", qmodel_merge_calibrations(paths[ALL], parts, 2));
  FAILS(QTN_EFORMAT, "text.qcal: not a calibration file", qmodel_load_calibration(prepared, paths[TEXT]));
  FAILS(QTN_EIO, "nothing.qcal", qmodel_load_calibration(prepared, paths[NOTHING]));
  FAILS(QTN_EIO, "/nonexistent", qmodel_save_calibration(prepared, "/nonexistent/a.qcal"));
  FAILS(QTN_EINVAL, "path is NULL", qmodel_save_calibration(prepared, NULL));
  FAILS(QTN_EINVAL, "path is NULL", qmodel_load_calibration(prepared, NULL));
  FAILS(QTN_EINVAL, "parts[0] is NULL", qmodel_merge_calibrations(paths[ALL], none, 1));
  FAILS(QTN_EINVAL, "count is 0", qmodel_merge_calibrations(paths[ALL], NULL, 0));
  FAILS(QTN_ESTATE, "not prepared", qmodel_save_calibration(m, parts[0]));
  FAILS(QTN_ESTATE, "not prepared", qmodel_load_calibration(m, parts[0]));
  assert_int_not_equal(access(paths[ALL], F_OK), 0);
  converted_bytes(&after, prepared);
  check_same(&after, &before);

  OK(qmodel_save_calibration(other, parts[1])); /* one that has seen nothing changes nothing */
  qmodel_free(other);
  other = prepare("onnx");
  OK(qmodel_save_calibration(other, parts[1]));
  OK(qmodel_load_calibration(other, parts[1]));
  FAILS(QTN_ESTATE, "has not been calibrated", qmodel_convert(&out, other, NULL));
  OK(qmodel_load_calibration(other, parts[0]));
  converted_bytes(&after, other);
  check_same(&after, &before);
  qmodel_free(m);
  qmodel_free(prepared);
  qmodel_free(other);
}

/** What the callbacks are to do, and what became of them. */
typedef struct source {
  qstatus failure;    /**< of sample `bad` */
  size_t bad, cancel; /**< cancel: the number of samples after which progress cancels */
  int with_nan, without_handle;
  size_t reads, done, total;
  char stage[32];
} source;

static qstatus give(qtensor **inputs, size_t input_count, size_t index, void *ctx) {
  source *s = ctx;
  assert_int_equal(input_count, 1);
  assert_in_range(index, 0, SAMPLES - 1);
  ++s->reads;
  if (s->without_handle && index == s->bad) return QTN_OK;
  inputs[0] = sample(index);
  if (s->with_nan && index == s->bad) {
    void *data = NULL;
    OK(qtensor_data_mut(&data, inputs[0]));
    ((float *)data)[7] = NAN;
  }
  return index == s->bad ? s->failure : QTN_OK;
}

static qanswer told(const char *stage, size_t done, size_t total, void *ctx) {
  source *s = ctx;
  assert_int_equal(done, s->done + 1);
  s->done = done;
  s->total = total;
  strncpy(s->stage, stage, sizeof s->stage - 1);
  return done == s->cancel ? QTN_CANCEL : QTN_CONTINUE;
}

static void one_call(void **state) {
  qmodel *m = load_tiny(), *prepared = prepare("onnx"), *int8 = NULL;
  qconfig *config = NULL;
  qattrs *attrs = NULL;
  source s = {QTN_OK, 0, 0, 0, 0, 0, 0, 0, ""};
  file_bytes want, got;
  (void)state;
  OK(qconfig_create(&config, "onnx"));
  OK(qattrs_create(&attrs));
  calibrate(prepared, 0, SAMPLES);
  converted_bytes(&want, prepared);
  OK(qattrs_set_int(attrs, "plain", 1));
  OK(qmodel_quantize(&int8, NULL, m, config, give, SAMPLES, attrs, told, &s));
  assert_true(s.reads >= SAMPLES);  /* those held back are read again to judge the result */
  assert_int_equal(s.done, SAMPLES);
  assert_int_equal(s.total, SAMPLES);
  assert_string_equal(s.stage, "calibrating");
  bytes_of(&got, int8);
  check_same(&got, &want);
  OK(qmodel_quantize(&int8, NULL, m, config, give, SAMPLES, NULL, NULL, &s));
  qmodel_free(int8);

  FAILS(QTN_ESTATE, "there are no samples", qmodel_quantize(&int8, NULL, m, config, give, 0, NULL, told, &s));
  FAILS(QTN_ESTATE, "prepared already", qmodel_quantize(&int8, NULL, prepared, config, give, 1, NULL, told, &s));
  FAILS(QTN_EINVAL, "mode -1 is unknown", qmodel_prepare(&int8, m, config, (qmode)-1));
  FAILS(QTN_EINVAL, "sample is NULL", qmodel_quantize(&int8, NULL, m, config, NULL, 1, NULL, told, &s));
  OK(qattrs_set_int(attrs, "magic", 1));
  FAILS(QTN_EINVAL, "magic", qmodel_quantize(&int8, NULL, m, config, give, 1, attrs, told, &s));
  qattrs_free(attrs);
  qconfig_free(config);
  qmodel_free(m);
  qmodel_free(prepared);
}

/** Layers that fall back to int16 need a file format that has it. */
static void targets_in_16_bits(void **state) {
  static const char *const kFormats[] = {"qdq", "qoperator"};
  qmodel *m = load_tiny(), *wide = NULL, *loaded = NULL;
  qconfig *config = NULL;
  qattrs *attrs = NULL, *old = NULL;
  qblob *report = NULL;
  source s = {QTN_OK, 0, 0, 0, 0, 0, 0, 0, ""};
  size_t i;
  (void)state;
  OK(qconfig_create(&config, "onnx"));
  OK(qattrs_create(&attrs));
  OK(qattrs_set_float(attrs, "target_top1", 1.0));
  OK(qattrs_set_float(attrs, "target_sqnr", 300.0));
  OK(qattrs_set_string(attrs, "fallback", "int16"));
  OK(qmodel_quantize(&wide, &report, m, config, give, SAMPLES, attrs, NULL, &s));
  assert_non_null(strstr(qblob_data(report), "\"target_sqnr\":{\"wanted\":300"));
  assert_non_null(strstr(qblob_data(report), "\"holds\":false"));
  assert_non_null(strstr(qblob_data(report), "\"in_int16\":[{\"node\":"));
  OK(qattrs_create(&old));
  for (i = 0; i < COUNT(kFormats); ++i) {
    OK(qattrs_set_string(old, "format", kFormats[i]));
    OK(qattrs_set_int(old, "opset", 19));
    FAILS(QTN_EUNSUPPORTED, "opset 19 has no quantization to int16; opset 21 has",
          qmodel_save(wide, paths[INT8], old));
    OK(qattrs_set_int(old, "opset", 21));
    OK(qmodel_save(wide, paths[INT8], old));
    OK(qmodel_load(&loaded, paths[INT8]));
    qmodel_free(loaded);
  }
  OK(qmodel_save(wide, paths[INT8], NULL));
  qblob_free(report);
  qattrs_free(old);
  qattrs_free(attrs);
  qconfig_free(config);
  qmodel_free(wide);
  qmodel_free(m);
}

static void one_call_that_ends_early(void **state) {
  static const struct {
    source s;
    qstatus status;
    const char *message;
    size_t reads;
  } cases[] = {
      {{QTN_OK, 0, 3, 0, 0, 0, 0, 0, ""}, QTN_ECANCELED, "canceled while calibrating, 3 of 8 done", 3},
      {{QTN_ECANCELED, 2, 0, 0, 0, 0, 0, 0, ""}, QTN_ECANCELED, "sample 2 gave QTN_ECANCELED", 3},
      {{QTN_EIO, 5, 0, 0, 0, 0, 0, 0, ""}, QTN_EIO, "sample 5 gave QTN_EIO", 6},
      {{(qstatus)99, 1, 0, 0, 0, 0, 0, 0, ""}, QTN_EINVAL, "sample 1 gave 99, which is no status", 2},
      {{(qstatus)-1, 1, 0, 0, 0, 0, 0, 0, ""}, QTN_EINVAL, "sample 1 gave -1, which is no status", 2},
      {{QTN_OK, 4, 0, 1, 0, 0, 0, 0, ""}, QTN_EINVAL, "nan at index 7 of sample 4", 5},
      {{QTN_OK, 1, 0, 0, 1, 0, 0, 0, ""}, QTN_EINVAL, "input 0 of sample 1 is NULL", 2},
  };
  qmodel *m = load_tiny(), *int8 = NULL;
  qconfig *config = NULL;
  qattrs *plain = NULL;
  source tried = {QTN_OK, 0, 3, 0, 0, 0, 0, 0, ""};
  size_t i;
  (void)state;
  OK(qconfig_create(&config, "onnx"));
  OK(qattrs_create(&plain));
  OK(qattrs_set_int(plain, "plain", 1));
  FAILS(QTN_ECANCELED, "canceled while trying plain, 3 of 5 done",
        qmodel_quantize(&int8, NULL, m, config, give, SAMPLES, NULL, told, &tried));
  for (i = 0; i < COUNT(cases); ++i) {
    source s = cases[i].s;
    int8 = (qmodel *)&s;
    FAILS(cases[i].status, cases[i].message, qmodel_quantize(&int8, NULL, m, config, give, SAMPLES, plain, told, &s));
    assert_null(int8);
    assert_int_equal(s.reads, cases[i].reads);
  }
  qattrs_free(plain);
  qconfig_free(config);
  qmodel_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_add_up),
      cmocka_unit_test(files_that_do_not_belong),
      cmocka_unit_test(one_call),
      cmocka_unit_test(targets_in_16_bits),
      cmocka_unit_test(one_call_that_ends_early),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
