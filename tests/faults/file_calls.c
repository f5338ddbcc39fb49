/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls one function of the C API that has to do with a file, for tests that break the files under it.
 *
 *     file_calls list                    the functions
 *     file_calls prepare FOLDER          writes what they read: in.*
 *     file_calls FUNCTION FOLDER [again] calls it, on in.* or out.*; with `again` once more
 *
 * prints a line for each call: the status, a tab, and the message or what the result is like. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../capi/tiny_model.h"
#include "qtensor/qtensor.h"

#define NEED(call)                                                      \
  do {                                                                  \
    if ((call) != QTN_OK) {                                             \
      fprintf(stderr, "file_calls: %s: %s\n", #call, qerror_message()); \
      exit(2);                                                          \
    }                                                                   \
  } while (0)

static const char *folder;
static char result[65536]; /* what the last call gave */
static char message[1024]; /* why it failed, where other calls followed */

static const char *path(const char *name) {
  static char paths[4][4096];
  static int next;
  char *here = paths[next++ % 4];
  snprintf(here, sizeof paths[0], "%s/%s", folder, name);
  return here;
}

/* --- what is written, made without files */
static qmodel *model;
static qmodel *prepared;
static qconfig *config;
static qtrainer *trainer;
static qobserver *observer;
static qtensor *x, *label, *grid_values;

static void make(void) {
  tiny_model bytes;
  float values[TINY_INPUTS];
  qquantizer *grid = NULL;
  qmodel *trained = NULL;
  const double scale = 0.01;
  const int64_t zero = 100, shape[] = {1, 1, 6, 6}, one[] = {1};
  double loss;
  tiny_model_make_deep(&bytes, "Relu", "Identity");
  tiny_sample(values, 1);
  NEED(qtensor_create(&x, QTN_FLOAT32, shape, 4, NULL, values, sizeof values));
  NEED(qtensor_create(&label, QTN_INT64, one, 1, NULL, one, sizeof one));
  NEED(qquantizer_create(&grid, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, &scale, &zero, 1, NULL));
  NEED(qtensor_quantize(&grid_values, x, grid));
  NEED(qmodel_load_bytes(&model, bytes.data, bytes.size));
  NEED(qconfig_create(&config, "onnx"));
  NEED(qmodel_prepare(&prepared, model, config, QTN_PTQ));
  NEED(qmodel_calibrate(prepared, (const qtensor *const *)&x, 1));
  NEED(qmodel_prepare(&trained, model, config, QTN_QAT));
  NEED(qtrainer_create(&trainer, trained, NULL));
  NEED(qtrainer_step(&loss, trainer, (const qtensor *const *)&x, 1, (const qtensor *const *)&label, 1));
  NEED(qobserver_create(&observer, "histogram", NULL));
  NEED(qobserver_observe(observer, x));
  qquantizer_free(grid);
  qmodel_free(trained);
}

static void drop(void) {
  qtensor_free(x);
  qtensor_free(label);
  qtensor_free(grid_values);
  qmodel_free(model);
  qmodel_free(prepared);
  qconfig_free(config);
  qtrainer_free(trainer);
  qobserver_free(observer);
}

/* --- what a result is like: all of it, short enough for a line */
static void put(char *to, size_t size, const void *bytes, size_t count) {
  unsigned long long hash = 14695981039346656037ull;
  size_t i;
  for (i = 0; i < count; ++i) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
  snprintf(to, size, "%zu bytes, %016llx", count, hash);
}

static void put_tensor(const qtensor *t) {
  size_t length;
  NEED(qtensor_describe(result, sizeof result, &length, t));
  for (length = 0; result[length]; ++length)
    if (result[length] == '\n') result[length] = ' ';
}

/* A model is what it computes and what it says of itself. */
static void put_model(const qmodel *m) {
  qblob *text = NULL;
  qsession *session = NULL;
  qtensor *y = NULL;
  size_t length;
  NEED(qmodel_inspect(&text, m));
  NEED(qsession_create(&session, m, NULL));
  if (qsession_run(&y, 1, session, (const qtensor *const *)&x, 1) == QTN_OK) {
    put_tensor(y);
  } else {
    result[0] = '\0';
  }
  length = strlen(result);
  put(result + length, sizeof result - length, qblob_data(text), qblob_size(text));
  qtensor_free(y);
  qsession_free(session);
  qblob_free(text);
}

/* --- the functions */
static qstatus call_qconfig_save(void) { return qconfig_save(config, path("out.json")); }
static qstatus call_qmodel_save(void) { return qmodel_save(model, path("out.onnx"), NULL); }

/* A network from elsewhere, with constants that are large enough. */
static qstatus call_qmodel_save_external(void) {
  char digits[4096];
  qmodel *large = NULL;
  qattrs *attrs = NULL;
  qstatus status;
  snprintf(digits, sizeof digits, "%s/digits.onnx", getenv("QTENSOR_DIGITS"));
  NEED(qmodel_load(&large, digits));
  NEED(qattrs_create(&attrs));
  NEED(qattrs_set_int(attrs, "external_data", 1));
  status = qmodel_save(large, path("out.onnx"), attrs);
  qattrs_free(attrs);
  qmodel_free(large);
  return status;
}

static qstatus call_qmodel_save_calibration(void) { return qmodel_save_calibration(prepared, path("out.calibration")); }
static qstatus call_qtrainer_save(void) { return qtrainer_save(trainer, path("out.safetensors")); }
static qstatus call_qobserver_save_file(void) { return qobserver_save_file(observer, path("out.observer")); }
static qstatus call_qtensor_save(void) { return qtensor_save(grid_values, path("out.safetensors")); }
static qstatus call_qtensor_save_npy(void) { return qtensor_save_npy(x, path("out.npy")); }

static qstatus call_qtensor_save_all(void) {
  static const char *const names[] = {"first", "second"};
  const qtensor *both[2];
  both[0] = x, both[1] = grid_values;
  return qtensor_save_all(path("out.safetensors"), names, both, 2);
}

static qstatus call_qmodel_merge_calibrations(void) {
  const char *parts[2];
  parts[0] = path("in.calibration"), parts[1] = path("in.calibration");
  return qmodel_merge_calibrations(path("out.calibration"), parts, 2);
}

static qstatus load_model(const char *name) {
  qmodel *m = NULL;
  const qstatus status = qmodel_load(&m, path(name));
  if (status == QTN_OK) put_model(m);
  qmodel_free(m);
  return status;
}

static qstatus call_qmodel_load(void) { return load_model("in.onnx"); }
static qstatus call_qmodel_load_external(void) { return load_model("external.onnx"); }

static qstatus call_qconfig_load(void) {
  qconfig *c = NULL;
  qmodel *m = NULL;
  const qstatus status = qconfig_load(&c, path("in.json"));
  if (status == QTN_OK) {
    NEED(qmodel_quantize_dynamic(&m, model, c, NULL));
    put_model(m);
  }
  qconfig_free(c);
  qmodel_free(m);
  return status;
}

static qstatus call_qmodel_load_calibration(void) {
  qmodel *fresh = NULL, *int8 = NULL;
  qstatus status;
  NEED(qmodel_prepare(&fresh, model, config, QTN_PTQ));
  status = qmodel_load_calibration(fresh, path("in.calibration"));
  snprintf(message, sizeof message, "%s", qerror_message());
  if (status == QTN_OK) {
    NEED(qmodel_convert(&int8, fresh, NULL));
    put_model(int8);
  } else if (qmodel_convert(&int8, fresh, NULL) == QTN_OK) {
    fprintf(stderr, "file_calls: a calibration that was not loaded has changed the model\n");
    exit(2);
  }
  qmodel_free(fresh);
  qmodel_free(int8);
  return status;
}

static qstatus call_qtrainer_load(void) {
  const qstatus status = qtrainer_load(trainer, path("in.checkpoint.safetensors"));
  qmodel *m = NULL, *int8 = NULL;
  if (status != QTN_OK) return status;
  NEED(qtrainer_model(&m, trainer));
  NEED(qmodel_convert(&int8, m, NULL));
  put_model(int8);
  qmodel_free(m);
  qmodel_free(int8);
  return status;
}

static qstatus call_qobserver_load_file(void) {
  qobserver *o = NULL;
  qblob *bytes = NULL;
  const qstatus status = qobserver_load_file(&o, path("in.observer"));
  if (status == QTN_OK) {
    NEED(qobserver_save(&bytes, o));
    put(result, sizeof result, qblob_data(bytes), qblob_size(bytes));
  }
  qblob_free(bytes);
  qobserver_free(o);
  return status;
}

static qstatus give(qtensor *t, qstatus status) {
  if (status == QTN_OK) put_tensor(t);
  qtensor_free(t);
  return status;
}

static qstatus call_qtensor_load(void) {
  qtensor *t = NULL;
  const qstatus status = qtensor_load(&t, path("in.safetensors"));
  return give(t, status);
}

static qstatus call_qtensor_load_named(void) {
  qtensor *t = NULL;
  const qstatus status = qtensor_load_named(&t, path("in.all.safetensors"), "second");
  return give(t, status);
}

static qstatus call_qtensor_load_npy(void) {
  qtensor *t = NULL;
  const qstatus status = qtensor_load_npy(&t, path("in.npy"));
  return give(t, status);
}

static qstatus call_qtensor_load_rows(void) {
  qtensor *t = NULL;
  const qstatus status = qtensor_load_rows(&t, path("in.all.safetensors"), "first", 0, 1);
  return give(t, status);
}

static qstatus call_qtensor_inspect(void) {
  qblob *text = NULL;
  const qstatus status = qtensor_inspect(&text, path("in.all.safetensors"));
  if (status == QTN_OK) put(result, sizeof result, qblob_data(text), qblob_size(text));
  qblob_free(text);
  return status;
}

static const struct {
  const char *name;
  qstatus (*call)(void);
} functions[] = {
#define ROW(name) \
  { #name, call_##name }
    ROW(qconfig_save),
    ROW(qconfig_load),
    ROW(qmodel_load),
    ROW(qmodel_load_external),
    ROW(qmodel_save),
    ROW(qmodel_save_external),
    ROW(qmodel_save_calibration),
    ROW(qmodel_load_calibration),
    ROW(qmodel_merge_calibrations),
    ROW(qtrainer_save),
    ROW(qtrainer_load),
    ROW(qobserver_save_file),
    ROW(qobserver_load_file),
    ROW(qtensor_save),
    ROW(qtensor_load),
    ROW(qtensor_save_all),
    ROW(qtensor_load_named),
    ROW(qtensor_save_npy),
    ROW(qtensor_load_npy),
    ROW(qtensor_load_rows),
    ROW(qtensor_inspect),
#undef ROW
};

enum { COUNT = sizeof functions / sizeof *functions };

/* Files of every kind; external.onnx and its data are the test's. */
static void prepare(void) {
  static const char *const names[] = {"first", "second"};
  const qtensor *both[2];
  both[0] = x, both[1] = grid_values;
  NEED(qconfig_save(config, path("in.json")));
  NEED(qmodel_save(model, path("in.onnx"), NULL));
  NEED(qmodel_save_calibration(prepared, path("in.calibration")));
  NEED(qtrainer_save(trainer, path("in.checkpoint.safetensors")));
  NEED(qobserver_save_file(observer, path("in.observer")));
  NEED(qtensor_save(grid_values, path("in.safetensors")));
  NEED(qtensor_save_all(path("in.all.safetensors"), names, both, 2));
  NEED(qtensor_save_npy(x, path("in.npy")));
}

int main(int argc, char **argv) {
  int i, times;
  if (argc == 2 && strcmp(argv[1], "list") == 0) {
    for (i = 0; i < COUNT; ++i) printf("%s\n", functions[i].name);
    return 0;
  }
  if (argc < 3) return 2;
  folder = argv[2];
  NEED(qlib_set_threads(1));
  make();
  if (strcmp(argv[1], "prepare") == 0) {
    prepare();
    drop();
    return 0;
  }
  for (i = 0; i < COUNT && strcmp(functions[i].name, argv[1]) != 0; ++i) continue;
  if (i == COUNT) return 2;
  for (times = argc > 3 ? 2 : 1; times > 0; --times) {
    qstatus status;
    strcpy(result, "written");
    message[0] = '\0';
    status = functions[i].call();
    printf("%s\t%s\n", qstatus_name(status), status != QTN_OK ? *message ? message : qerror_message() : result);
  }
  drop();
  return 0;
}
