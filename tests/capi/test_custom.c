/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that the program registers. The networks, and what they compute, are those of tests/golden/make_custom.py. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

#define DOMAIN "com.example"

enum { THREADS = 4, RUNS = 50 };

/* --- the operators of the networks */

typedef struct counts {
  atomic_int infers, runs, quantized_runs, destroyed;
} counts;

static qstatus like_first(qcall *call, void *ctx) {
  (void)ctx;
  return qcall_set_output_type(call, 0, qcall_input_dtype(call, 0), qcall_input_shape(call, 0),
                               qcall_input_rank(call, 0));
}

static qstatus counted_like_first(qcall *call, void *ctx) {
  ++((counts *)ctx)->infers;
  return like_first(call, NULL);
}

static float swish_of(float x, double alpha) { return x / (1 + expf((float)-alpha * x)); }

static qstatus swish(qcall *call, void *ctx) {
  const qtensor *x = qcall_input(call, 0);
  const float *from = qtensor_data(x);
  void *to = NULL;
  double alpha = 0;
  int64_t i;
  qstatus status = qattrs_get_float(&alpha, qcall_attrs(call), "alpha", 1);
  if (status == QTN_OK) status = qtensor_data_mut(&to, qcall_output(call, 0));
  if (status != QTN_OK) return status;
  for (i = 0; i < qtensor_numel(x); ++i) ((float *)to)[i] = swish_of(from[i], alpha);
  if (ctx) ++((counts *)ctx)->runs;
  return QTN_OK;
}

/* By a table of 256 results, of uint8 alone. */
static qstatus quantized_swish(qcall *call, void *ctx) {
  const qtensor *x = qcall_input(call, 0);
  qtensor *y = qcall_output(call, 0);
  const qquantizer *qx = qtensor_quantizer(x), *qy = qtensor_quantizer(y);
  const double sx = qquantizer_scales(qx)[0], sy = qquantizer_scales(qy)[0];
  const int64_t zx = qquantizer_zero_points(qx)[0], zy = qquantizer_zero_points(qy)[0];
  const uint8_t *from = qtensor_data(x);
  uint8_t table[256];
  void *to = NULL;
  double alpha = 0;
  int64_t i;
  qstatus status;
  if (qtensor_dtype(x) != QTN_UINT8 || qtensor_dtype(y) != QTN_UINT8) return QTN_EUNSUPPORTED;
  status = qattrs_get_float(&alpha, qcall_attrs(call), "alpha", 1);
  if (status == QTN_OK) status = qtensor_data_mut(&to, y);
  if (status != QTN_OK) return status;
  for (i = 0; i < 256; ++i) {
    const double q = nearbyint(swish_of((float)((double)(i - zx) * sx), alpha) / sy) + (double)zy;
    table[i] = (uint8_t)(q < 0 ? 0 : q > 255 ? 255 : q);
  }
  for (i = 0; i < qtensor_numel(x); ++i) ((uint8_t *)to)[i] = table[from[i]];
  ++((counts *)ctx)->quantized_runs;
  return QTN_OK;
}

static qstatus infer_halves(qcall *call, void *ctx) {
  const int64_t *x = qcall_input_shape(call, 0);
  int64_t half[2];
  qstatus status;
  (void)ctx;
  if (qcall_input_rank(call, 0) != 2 || x[1] % 2 != 0)
    return qcall_fail(call, QTN_ESHAPE, "x has no rows of two halves");
  half[0] = x[0];
  half[1] = x[1] / 2;
  status = qcall_set_output_type(call, 0, QTN_FLOAT32, half, 2);
  return status == QTN_OK ? qcall_set_output_type(call, 1, QTN_FLOAT32, half, 2) : status;
}

static qstatus halves(qcall *call, void *ctx) {
  const float *x = qtensor_data(qcall_input(call, 0));
  const float *row = qcall_input(call, 1) ? qtensor_data(qcall_input(call, 1)) : NULL;
  const int64_t rows = qcall_input_shape(call, 0)[0], half = qcall_input_shape(call, 0)[1] / 2;
  const double *factors = NULL;
  size_t count = 0, o;
  int64_t i, j;
  qstatus status = qattrs_get_floats(&factors, &count, qcall_attrs(call), "factors");
  (void)ctx;
  if (status != QTN_OK) return status;
  if (count != 2) return qcall_fail(call, QTN_EINVAL, "needs two factors");
  for (o = 0; o < 2; ++o) {
    void *to = NULL;
    status = qtensor_data_mut(&to, qcall_output(call, o));
    if (status != QTN_OK) return status;
    for (i = 0; i < rows; ++i)
      for (j = 0; j < half; ++j)
        ((float *)to)[i * half + j] = x[(2 * i + (int64_t)o) * half + j] * (float)factors[o] + (row ? row[j] : 0);
  }
  return QTN_OK;
}

static qstatus infer_take(qcall *call, void *ctx) {
  const qtensor *count = qcall_input(call, 1);
  int64_t shape[2];
  (void)ctx;
  if (!count) return QTN_ESTATE;
  shape[0] = *(const int64_t *)qtensor_data(count);
  shape[1] = qcall_input_shape(call, 0)[1];
  return qcall_set_output_type(call, 0, qcall_input_dtype(call, 0), shape, 2);
}

static qstatus take(qcall *call, void *ctx) {
  qtensor *y = qcall_output(call, 0), *rows = NULL;
  qstatus status = qtensor_slice(&rows, qcall_input(call, 0), 0, 0, qtensor_shape(y)[0], 1);
  (void)ctx;
  if (status == QTN_OK) status = qtensor_copy(y, rows);
  qtensor_free(rows);
  return status;
}

static void destroyed(void *ctx) { ++((counts *)ctx)->destroyed; }

static void register_layers(counts *seen, qop_call_cb quantized) {
  OK(qop_register(DOMAIN, "Swish", 2, counted_like_first, swish, quantized, destroyed, seen));
  OK(qop_register(DOMAIN, "Halves", 1, infer_halves, halves, NULL, NULL, NULL));
}

static void unregister_layers(void) {
  OK(qop_unregister(DOMAIN, "Swish", 2));
  OK(qop_unregister(DOMAIN, "Halves", 1));
}

/* --- networks */

static qtensor *npy(const char *name) {
  qtensor *t = NULL;
  char path[512];
  snprintf(path, sizeof path, "%s/%s.npy", QTN_CUSTOM, name);
  OK(qtensor_load_npy(&t, path));
  return t;
}

static qsession *session_of(const qmodel *model, const char *engine) {
  qsession *s = NULL;
  qattrs *attrs = NULL;
  OK(qattrs_create(&attrs));
  OK(qattrs_set_string(attrs, "engine", engine));
  OK(qsession_create(&s, model, attrs));
  qattrs_free(attrs);
  return s;
}

static qtensor *run_layers(const qsession *s) {
  qtensor *x = npy("layers_x"), *y = NULL;
  const qtensor *inputs[1];
  inputs[0] = x;
  OK(qsession_run(&y, 1, s, inputs, 1));
  qtensor_free(x);
  return y;
}

static void check_layers(const qsession *s) {
  qtensor *y = run_layers(s), *want = npy("layers_y");
  check_floats(y, qtensor_data(want), (size_t)qtensor_numel(want), 2e-5f);
  qtensor_free(want);
  qtensor_free(y);
}

static void both_engines_run_them(void **unused) {
  static const char *const engines[] = {"native", "reference"};
  counts seen = {0};
  qmodel *model = NULL;
  size_t i;
  (void)unused;
  register_layers(&seen, NULL);
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  for (i = 0; i < COUNT(engines); ++i) {
    qsession *s = session_of(model, engines[i]);
    const int before = seen.runs;
    check_layers(s);
    assert_int_equal(seen.runs, before + 1);
    qsession_free(s);
  }
  assert_true(seen.infers > 0);
  qmodel_free(model);
  unregister_layers();
  assert_int_equal(seen.destroyed, 1);
}

/* Files do not know it any more; what has been loaded goes on, and the last of it calls `destroy`. */
static void sessions_outlive_a_registration(void **unused) {
  counts seen = {0};
  qmodel *model = NULL, *other = NULL;
  qsession *s;
  (void)unused;
  FAILS(QTN_EUNSUPPORTED, "Halves (domain com.example, opset 3) of 1 node, Swish (domain com.example, opset 3)",
        qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  register_layers(&seen, NULL);
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  unregister_layers();
  FAILS(QTN_EUNSUPPORTED, "Swish", qmodel_load(&other, QTN_CUSTOM "/layers.onnx"));
  FAILS(QTN_EINVAL, "operator Swish (domain com.example) is not registered since version 2",
        qop_unregister(DOMAIN, "Swish", 2));
  s = session_of(model, "native");
  qmodel_free(model);
  check_layers(s);
  assert_int_equal(seen.destroyed, 0);
  qsession_free(s);
  assert_int_equal(seen.destroyed, 1);
}

static void files_hold_them_as_they_were(void **unused) {
  static const char import[] = "com.example\x10\x03"; /* an OperatorSetIdProto's domain, and its version 3 */
  counts seen = {0};
  qmodel *model = NULL, *again = NULL;
  qblob *bytes = NULL;
  qsession *s;
  const char *at;
  size_t i;
  int found = 0;
  (void)unused;
  register_layers(&seen, NULL);
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  OK(qmodel_save_bytes(&bytes, model, NULL));
  at = qblob_data(bytes);
  for (i = 0; i + sizeof import - 1 <= qblob_size(bytes); ++i) found += memcmp(at + i, import, sizeof import - 1) == 0;
  assert_int_equal(found, 1);
  OK(qmodel_load_bytes(&again, qblob_data(bytes), qblob_size(bytes)));
  s = session_of(again, "native");
  check_layers(s);
  qsession_free(s);
  qmodel_free(again);
  unregister_layers();
  FAILS(QTN_EUNSUPPORTED, "Swish", qmodel_load_bytes(&again, qblob_data(bytes), qblob_size(bytes)));
  qblob_free(bytes);
  qmodel_free(model);
}

static void inspect_names_them(void **unused) {
  counts seen = {0};
  qmodel *model = NULL;
  qblob *text = NULL;
  (void)unused;
  register_layers(&seen, NULL);
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  OK(qmodel_inspect(&text, model));
  assert_non_null(strstr(qblob_data(text), "\"op\":\"com.example::Swish\""));
  qblob_free(text);
  qmodel_free(model);
  unregister_layers();
}

static qstatus row_of(qtensor **inputs, size_t input_count, size_t index, void *ctx) {
  assert_int_equal(input_count, 1);
  return qtensor_slice(inputs, ctx, 0, (int64_t)index, (int64_t)index + 1, 1);
}

static qmodel *quantized_layers(const qmodel *model, const char *left_in_float) {
  qmodel *int8 = NULL;
  qconfig *config = NULL;
  qtensor *x = npy("layers_x");
  OK(qconfig_create(&config, "onnx"));
  if (left_in_float) OK(qconfig_set(config, left_in_float, NULL));
  OK(qmodel_quantize(&int8, NULL, model, config, row_of, 64, NULL, NULL, x));
  qtensor_free(x);
  qconfig_free(config);
  return int8;
}

/* How far the int8 network is from what the float one computes, as a part of the largest output. */
static float loss_of(const qsession *s) {
  qtensor *y = run_layers(s), *want = npy("layers_y");
  float worst = 0, largest = 0;
  int64_t i;
  for (i = 0; i < qtensor_numel(want); ++i) {
    worst = fmaxf(worst, fabsf(float_at(y, (size_t)i) - float_at(want, (size_t)i)));
    largest = fmaxf(largest, fabsf(float_at(want, (size_t)i)));
  }
  qtensor_free(y);
  qtensor_free(want);
  return worst / largest;
}

static void check_same(const qsession *a, const qsession *b) {
  qtensor *ya = run_layers(a), *yb = run_layers(b);
  assert_memory_equal(qtensor_data(ya), qtensor_data(yb), qtensor_nbytes(ya));
  qtensor_free(ya);
  qtensor_free(yb);
}

static void quantization_leaves_them_in_float(void **unused) {
  counts seen = {0};
  qmodel *model = NULL, *int8;
  qblob *text = NULL;
  qsession *native, *reference;
  (void)unused;
  register_layers(&seen, NULL);
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  int8 = quantized_layers(model, NULL);
  OK(qmodel_inspect(&text, int8));
  assert_non_null(strstr(qblob_data(text), "\"op\":\"com.example::Swish\",\"dtype\":\"float32\""));
  qblob_free(text);
  native = session_of(int8, "native");
  reference = session_of(int8, "reference");
  assert_true(loss_of(native) < 0.05f);
  assert_true(loss_of(reference) < 0.05f);
  qsession_free(native);
  qsession_free(reference);
  qmodel_free(int8);
  qmodel_free(model);
  unregister_layers();
}

static void a_quantized_run_takes_integers(void **unused) {
  counts seen = {0};
  qmodel *model = NULL, *int8, *again = NULL;
  qblob *bytes = NULL;
  qsession *native, *reference;
  int before;
  (void)unused;
  register_layers(&seen, quantized_swish);
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  int8 = quantized_layers(model, NULL);
  native = session_of(int8, "native");
  reference = session_of(int8, "reference");
  before = seen.quantized_runs;
  check_same(native, reference);
  assert_int_equal(seen.quantized_runs, before + 2);
  assert_true(loss_of(native) < 0.05f);
  qsession_free(reference);

  OK(qmodel_save_bytes(&bytes, int8, NULL));
  OK(qmodel_load_bytes(&again, qblob_data(bytes), qblob_size(bytes)));
  reference = session_of(again, "native");
  before = seen.quantized_runs;
  check_same(native, reference);
  assert_int_equal(seen.quantized_runs, before + 2);
  qsession_free(reference);
  qmodel_free(again);
  qblob_free(bytes);
  qsession_free(native);
  qmodel_free(int8);

  int8 = quantized_layers(model, "op:" DOMAIN "::Swish");
  native = session_of(int8, "native");
  before = seen.quantized_runs;
  assert_true(loss_of(native) < 0.05f);
  assert_int_equal(seen.quantized_runs, before);
  qsession_free(native);
  qmodel_free(int8);
  qmodel_free(model);
  unregister_layers();
}

/* A copy takes the grid of what it copies along. */
static qstatus copy_with_its_grid(qcall *call, void *ctx) {
  (void)ctx;
  return qtensor_copy(qcall_output(call, 0), qcall_input(call, 0));
}

static void outputs_stay_on_their_grids(void **unused) {
  static const char *const engines[] = {"native", "reference"};
  counts seen = {0};
  qmodel *model = NULL, *prepared = NULL, *int8 = NULL;
  qconfig *config = NULL;
  qtensor *x = npy("layers_x"), *y = NULL;
  const qtensor *inputs[1];
  size_t i;
  (void)unused;
  inputs[0] = x;
  register_layers(&seen, copy_with_its_grid);
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  OK(qconfig_create(&config, "onnx"));
  OK(qmodel_prepare(&prepared, model, config, QTN_PTQ));
  OK(qmodel_calibrate(prepared, inputs, 1));
  OK(qmodel_convert(&int8, prepared, NULL));
  for (i = 0; i < COUNT(engines); ++i) {
    qsession *s = session_of(int8, engines[i]);
    FAILS(QTN_EINVAL, "node \"swish\": com.example::Swish: output 0 is not the tensor any more",
          qsession_run(&y, 1, s, inputs, 1));
    qsession_free(s);
  }
  qmodel_free(int8);
  qmodel_free(prepared);
  qconfig_free(config);
  qmodel_free(model);
  qtensor_free(x);
  unregister_layers();
}

/* --- shapes that follow from values */

static void shapes_may_follow_from_values(void **unused) {
  static const char *const engines[] = {"native", "reference"};
  const int64_t two = 2;
  qtensor *x = npy("shapes_x"), *want = npy("shapes_y"), *count;
  qmodel *model = NULL;
  size_t i;
  (void)unused;
  count = tensor_of(QTN_INT64, NULL, &two, sizeof two, DIMS(1));
  OK(qop_register(DOMAIN, "Take", 3, infer_take, take, NULL, NULL, NULL));
  OK(qmodel_load(&model, QTN_CUSTOM "/shapes.onnx"));
  for (i = 0; i < COUNT(engines); ++i) {
    qsession *s = session_of(model, engines[i]);
    const qtensor *inputs[2];
    qtensor *y = NULL;
    inputs[0] = x;
    inputs[1] = count;
    OK(qsession_run(&y, 1, s, inputs, 2));
    check_shape(y, DIMS(2, 3));
    check_floats(y, qtensor_data(want), 6, 0);
    qtensor_free(y);
    qsession_free(s);
  }
  qmodel_free(model);
  OK(qop_unregister(DOMAIN, "Take", 3));
  qtensor_free(count);
  qtensor_free(want);
  qtensor_free(x);
}

/* --- versions and names */

static qstatus constant_of(qcall *call, float value) {
  void *to = NULL;
  const qstatus status = qtensor_data_mut(&to, qcall_output(call, 0));
  int64_t i;
  for (i = 0; status == QTN_OK && i < qtensor_numel(qcall_output(call, 0)); ++i) ((float *)to)[i] = value;
  return status;
}

static qstatus say_version(qcall *call, void *ctx) { return constant_of(call, (float)*(const int *)ctx); }

static void a_file_gets_the_version_that_it_means(void **unused) {
  static int versions[] = {1, 3, 4};
  qmodel *model = NULL;
  qtensor *y, *x, *row;
  const qtensor *inputs[1];
  qsession *s;
  size_t i;
  const float zero[1] = {0};
  (void)unused;
  OK(qop_register(DOMAIN, "Halves", 1, infer_halves, halves, NULL, NULL, NULL));
  for (i = 0; i < COUNT(versions); ++i)
    OK(qop_register(DOMAIN, "Swish", versions[i], like_first, say_version, NULL, NULL, &versions[i]));
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  s = session_of(model, "native");
  x = npy("layers_x");
  inputs[0] = x;
  /* A single operator is of the newest version. */
  row = FLOATS(zero, DIMS(1));
  OK(qop_run(&y, 1, DOMAIN "::Swish", (const qtensor *const *)&row, 1, NULL));
  assert_float_equal(float_at(y, 0), 4, 0);
  qtensor_free(y);
  qtensor_free(row);
  /* The rows of what only sees constants are equal, and are those of version 3: of no other version. */
  OK(qsession_run(&y, 1, s, inputs, 1));
  {
    qtensor *w2 = NULL, *given_row = NULL;
    float want = 0;
    OK(qmodel_tensor(&w2, model, "w2"));
    OK(qmodel_tensor(&given_row, model, "row"));
    for (i = 0; i < 16; ++i) want += 3 * (2.0f * float_at(w2, 12 * i) - 0.5f * float_at(w2, 12 * i + 6));
    assert_float_equal(float_at(y, 0), want + 2 * float_at(given_row, 0), 1e-4);
    qtensor_free(w2);
    qtensor_free(given_row);
  }
  qtensor_free(y);
  qtensor_free(x);
  qsession_free(s);
  qmodel_free(model);
  for (i = 0; i < COUNT(versions); ++i) OK(qop_unregister(DOMAIN, "Swish", versions[i]));
  OK(qop_unregister(DOMAIN, "Halves", 1));
}

static void what_cannot_be_registered(void **unused) {
  counts seen = {0};
  (void)unused;
#define REFUSED(text, domain, name, version) \
  FAILS(QTN_EINVAL, text, qop_register(domain, name, version, like_first, swish, NULL, destroyed, &seen))
  REFUSED("qop_register: Relu is an operator that the library has", "", "Relu", 1);
  REFUSED("Relu is an operator that the library has", "ai.onnx", "Relu", 1);
  REFUSED("Upsample is an operator that the library has", "", "Upsample", 1);
  REFUSED("com.microsoft::FusedConv is an operator that the library has", "com.microsoft", "FusedConv", 1);
  REFUSED("com.microsoft::QLinearAdd is an operator", "com.microsoft", "QLinearAdd", 1);
  REFUSED("name \"\" is not one", DOMAIN, "", 1);
  REFUSED("name \"a::b\" is not one that an operator can have: letters, digits and _", DOMAIN, "a::b", 1);
  REFUSED("domain \"com example\" is not one", "com example", "Swish", 1);
  REFUSED("since_version of com.example::Swish is 0, below 1", DOMAIN, "Swish", 0);
  OK(qop_register(DOMAIN, "Swish", 1, like_first, swish, NULL, NULL, NULL));
  REFUSED("operator com.example::Swish is registered already since version 1", DOMAIN, "Swish", 1);
  OK(qop_unregister(DOMAIN, "Swish", 1));
  assert_int_equal(seen.destroyed, 0);
  /* An operator of ONNX's own which the library does not have. */
  OK(qop_register("ai.onnx", "StringConcat2", 20, like_first, swish, NULL, NULL, NULL));
  {
    const float x[] = {1};
    qtensor *one = FLOATS(x, DIMS(1)), *y = NULL;
    OK(qop_run(&y, 1, "StringConcat2", (const qtensor *const *)&one, 1, NULL));
    qtensor_free(y);
    qtensor_free(one);
  }
  OK(qop_unregister("", "StringConcat2", 20));
}

/* --- callbacks that do what they should not */

typedef struct badly {
  qdtype dtype;
  int64_t shape[9];
  size_t rank, output;
  qstatus returned;
} badly;

static qstatus infer_badly(qcall *call, void *ctx) {
  const badly *how = ctx;
  (void)qcall_set_output_type(call, how->output, how->dtype, how->shape, how->rank);
  return how->returned;
}

static void what_infer_must_not_say(void **unused) {
  static const struct {
    badly how;
    qstatus status;
    const char *text;
  } cases[] = {
      {{QTN_FLOAT32, {2, -3}, 2, 0, QTN_OK}, QTN_ESHAPE, "com.example::Bad: infer gave output 0 a dimension of -3"},
      {{QTN_FLOAT32, {1 << 30, 1 << 30}, 2, 0, QTN_OK}, QTN_ESHAPE, "com.example::Bad: an output of"},
      {{QTN_FLOAT32, {INT64_MAX, 2}, 2, 0, QTN_OK}, QTN_ESHAPE, ""},
      {{(qdtype)77, {1}, 1, 0, QTN_OK}, QTN_EDTYPE, "output 0 the dtype 77, which is unknown"},
      {{QTN_FLOAT32, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 9, 0, QTN_OK}, QTN_ESHAPE, "rank 9, over the limit of 8"},
      {{QTN_FLOAT32, {1}, 1, 3, QTN_OK}, QTN_EINVAL, "infer spoke of output 3 of 1"},
      {{QTN_FLOAT32, {1}, 1, 0, QTN_ESTATE}, QTN_ESTATE, "infer wants values that are not known, and all are"},
      {{QTN_FLOAT32, {1}, 1, 0, (qstatus)99}, QTN_EINVAL, "infer returned 99, which is no status"},
      {{QTN_FLOAT32, {1}, 1, 0, QTN_EIO}, QTN_EIO, "com.example::Bad: infer returned QTN_EIO"},
  };
  const float one[] = {1};
  qtensor *x = FLOATS(one, DIMS(1)), *y = NULL;
  size_t i;
  (void)unused;
  for (i = 0; i < COUNT(cases); ++i) {
    OK(qop_register(DOMAIN, "Bad", 1, infer_badly, swish, NULL, NULL, (void *)&cases[i].how));
    FAILS(cases[i].status, cases[i].text, qop_run(&y, 1, DOMAIN "::Bad", (const qtensor *const *)&x, 1, NULL));
    assert_null(y);
    OK(qop_unregister(DOMAIN, "Bad", 1));
  }
  qtensor_free(x);
}

static qstatus say_nothing(qcall *call, void *ctx) {
  (void)call;
  (void)ctx;
  return QTN_OK;
}

static qstatus fail_at_run(qcall *call, void *ctx) {
  (void)call;
  return *(qstatus *)ctx;
}

static qstatus fail_with_words(qcall *call, void *ctx) {
  (void)ctx;
  (void)qcall_fail(call, QTN_EDTYPE, "x is\nno good");
  return QTN_OK;
}

static qstatus fail_inside(qcall *call, void *ctx) {
  qtensor *y = NULL;
  (void)ctx;
  return qop_run(&y, 1, "NoSuchOperator", (const qtensor *[]){qcall_input(call, 0)}, 1, NULL);
}

static void failures_say_where(void **unused) {
  counts seen = {0};
  qmodel *model = NULL;
  qsession *s;
  qtensor *x = npy("layers_x"), *y = NULL;
  const qtensor *inputs[1];
  inputs[0] = x;
  (void)unused;
  OK(qop_register(DOMAIN, "Bad", 1, say_nothing, swish, NULL, NULL, NULL));
  FAILS(QTN_EINVAL, "com.example::Bad: infer said nothing of output 0",
        qop_run(&y, 1, DOMAIN "::Bad", inputs, 1, NULL));
  OK(qop_unregister(DOMAIN, "Bad", 1));
  OK(qop_register(DOMAIN, "Bad", 1, like_first, fail_with_words, NULL, NULL, NULL));
  FAILS(QTN_EDTYPE, "com.example::Bad: x is no good", qop_run(&y, 1, DOMAIN "::Bad", inputs, 1, NULL));
  OK(qop_unregister(DOMAIN, "Bad", 1));
  OK(qop_register(DOMAIN, "Bad", 1, like_first, fail_inside, NULL, NULL, NULL));
  FAILS(QTN_EUNSUPPORTED, "com.example::Bad: qop_run: operator \"NoSuchOperator\"",
        qop_run(&y, 1, DOMAIN "::Bad", inputs, 1, NULL));
  OK(qop_unregister(DOMAIN, "Bad", 1));

  register_layers(&seen, NULL);
  OK(qop_unregister(DOMAIN, "Swish", 2));
  {
    qstatus status = QTN_OK;
    OK(qop_register(DOMAIN, "Swish", 1, like_first, fail_at_run, NULL, NULL, &status));
    OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
    s = session_of(model, "native");
    status = QTN_EIO;
    FAILS(QTN_EIO, "node \"swish\": com.example::Swish: run returned QTN_EIO", qsession_run(&y, 1, s, inputs, 1));
    assert_null(y);
    qsession_free(s);
    s = session_of(model, "reference");
    FAILS(QTN_EIO, "node \"swish\": com.example::Swish: run returned QTN_EIO", qsession_run(&y, 1, s, inputs, 1));
    qsession_free(s);
  }
  qmodel_free(model);
  OK(qop_unregister(DOMAIN, "Swish", 1));
  OK(qop_unregister(DOMAIN, "Halves", 1));
  qtensor_free(x);
}

/* A shape that infer refuses is found when the file is loaded. */
static void files_that_do_not_fit_are_refused(void **unused) {
  qmodel *model = NULL;
  (void)unused;
  OK(qop_register(DOMAIN, "Swish", 1, infer_halves, swish, NULL, NULL, NULL));
  OK(qop_register(DOMAIN, "Halves", 1, infer_halves, halves, NULL, NULL, NULL));
  FAILS(QTN_EFORMAT, "node \"swish\": com.example::Swish: infer spoke of output 1 of 1",
        qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  OK(qop_unregister(DOMAIN, "Swish", 1));
  OK(qop_unregister(DOMAIN, "Halves", 1));
}

/* --- attributes as a callback sees them */

static qstatus look_at_attributes(qcall *call, void *ctx) {
  const qattrs *a = qcall_attrs(call);
  const int64_t *ints = NULL;
  const double *floats = NULL;
  const char *text = NULL;
  qtensor *tensor = NULL;
  size_t count = 0;
  int64_t number = 0;
  double real = 0;
  (void)ctx;
  assert_int_equal(qattrs_count(a), 4);
  assert_string_equal(qattrs_key(a, 0), "int");
  assert_string_equal(qattrs_key(a, 3), "text");
  assert_null(qattrs_key(a, 4));
  assert_string_equal(qattrs_kind(a, "int"), "int");
  assert_string_equal(qattrs_kind(a, "ints"), "ints");
  assert_string_equal(qattrs_kind(a, "real"), "float");
  assert_string_equal(qattrs_kind(a, "text"), "string");
  assert_null(qattrs_kind(a, "absent"));
  OK(qattrs_get_int(&number, a, "int", 1));
  assert_int_equal(number, 7);
  OK(qattrs_get_int(&number, a, "absent", 9));
  assert_int_equal(number, 9);
  OK(qattrs_get_float(&real, a, "real", 1));
  assert_float_equal(real, 0.5, 0);
  OK(qattrs_get_float(&real, a, "int", 1));
  assert_float_equal(real, 7, 0);
  OK(qattrs_get_string(&text, a, "text", "else"));
  assert_string_equal(text, "words");
  OK(qattrs_get_string(&text, a, "absent", "else"));
  assert_string_equal(text, "else");
  OK(qattrs_get_ints(&ints, &count, a, "ints"));
  assert_int_equal(count, 2);
  assert_int_equal(ints[1], -4);
  OK(qattrs_get_floats(&floats, &count, a, "absent"));
  assert_null(floats);
  assert_int_equal(count, 0);
  OK(qattrs_get_tensor(&tensor, a, "absent"));
  assert_null(tensor);
  FAILS(QTN_EINVAL, "\"text\" is of kind string, not int", qattrs_get_int(&number, a, "text", 1));
  FAILS(QTN_EINVAL, "\"int\" is of kind int, not floats", qattrs_get_floats(&floats, &count, a, "int"));
  FAILS(QTN_EINVAL, "\"real\" is of kind float, not tensor", qattrs_get_tensor(&tensor, a, "real"));
  assert_int_equal(qcall_input_count(call), 2);
  assert_int_equal(qcall_output_count(call), 1);
  assert_int_equal(qcall_input_dtype(call, 0), 0);
  assert_null(qcall_input_shape(call, 0));
  assert_null(qcall_input(call, 0));
  assert_null(qcall_input(call, 5));
  assert_null(qcall_output(call, 0)); /* which is infer's to describe */
  return qcall_set_output_type(call, 0, QTN_INT64, NULL, 0);
}

static qstatus write_seven(qcall *call, void *ctx) {
  void *to = NULL;
  (void)ctx;
  assert_null(qcall_output(call, 1));
  OK(qtensor_data_mut(&to, qcall_output(call, 0)));
  *(int64_t *)to = 7;
  return QTN_OK;
}

static void callbacks_see_the_whole_call(void **unused) {
  const int64_t ints[] = {3, -4};
  const float one[] = {1};
  qtensor *x = FLOATS(one, DIMS(1)), *y = NULL;
  const qtensor *inputs[2];
  qattrs *attrs = NULL;
  (void)unused;
  inputs[0] = NULL;
  inputs[1] = x;
  OK(qattrs_create(&attrs));
  OK(qattrs_set_int(attrs, "int", 7));
  OK(qattrs_set_float(attrs, "real", 0.5));
  OK(qattrs_set_string(attrs, "text", "words"));
  OK(qattrs_set_ints(attrs, "ints", ints, 2));
  OK(qop_register(DOMAIN, "Look", 1, look_at_attributes, write_seven, NULL, NULL, NULL));
  OK(qop_run(&y, 1, DOMAIN "::Look", inputs, 2, attrs));
  assert_int_equal(qtensor_rank(y), 0);
  assert_int_equal(*(const int64_t *)qtensor_data(y), 7);
  OK(qop_unregister(DOMAIN, "Look", 1));
  qtensor_free(y);
  qtensor_free(x);
  qattrs_free(attrs);
}

/* --- threads */

static void *run_again_and_again(void *session) {
  int i;
  for (i = 0; i < RUNS; ++i) check_layers(session);
  return NULL;
}

static void many_threads_run_one_operator(void **unused) {
  counts seen = {0};
  qmodel *model = NULL;
  pthread_t threads[THREADS];
  qsession *s;
  int i;
  (void)unused;
  register_layers(&seen, NULL);
  OK(qmodel_load(&model, QTN_CUSTOM "/layers.onnx"));
  s = session_of(model, "native");
  unregister_layers();
  qmodel_free(model);
  for (i = 0; i < THREADS; ++i) assert_int_equal(pthread_create(&threads[i], NULL, run_again_and_again, s), 0);
  for (i = 0; i < THREADS; ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(seen.runs, THREADS * RUNS);
  qsession_free(s);
  assert_int_equal(seen.destroyed, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_engines_run_them),
      cmocka_unit_test(sessions_outlive_a_registration),
      cmocka_unit_test(files_hold_them_as_they_were),
      cmocka_unit_test(inspect_names_them),
      cmocka_unit_test(quantization_leaves_them_in_float),
      cmocka_unit_test(a_quantized_run_takes_integers),
      cmocka_unit_test(outputs_stay_on_their_grids),
      cmocka_unit_test(shapes_may_follow_from_values),
      cmocka_unit_test(a_file_gets_the_version_that_it_means),
      cmocka_unit_test(what_cannot_be_registered),
      cmocka_unit_test(what_infer_must_not_say),
      cmocka_unit_test(failures_say_where),
      cmocka_unit_test(files_that_do_not_fit_are_refused),
      cmocka_unit_test(callbacks_see_the_whole_call),
      cmocka_unit_test(many_threads_run_one_operator),
  };
  return cmocka_run_group_tests_name("custom", tests, NULL, NULL);
}
