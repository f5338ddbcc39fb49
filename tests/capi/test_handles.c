/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointers that are no handles, in builds that look (QTN_CHECKS): one of another noun, one that was freed, memory that
 * never was one. Each is QTN_EINVAL with a line that says what it is; what has no status answers as for NULL. */
#include "check.h"
#include "tiny_model.h"

#ifdef QTN_CHECKS
#define CHECKS 1
#else
#define CHECKS 0
#endif

typedef struct handles {
  qattrs *attrs;
  qquantizer *quantizer;
  qtensor *tensor;
  qobserver *observer;
  qconfig *config;
  qmodel *model;
  qsession *session;
  qtrainer *trainer;
  qlayer *layer;
  qblob *blob;
} handles;

static handles h;

static int make(void **state) {
  tiny_model tiny;
  (void)state;
  tiny_model_make(&tiny);
  OK(qattrs_create(&h.attrs));
  h.quantizer = affine(QTN_INT8, 0.5, 0);
  h.tensor = tensor_of(QTN_FLOAT32, NULL, NULL, 0, DIMS(2, 3));
  OK(qobserver_create(&h.observer, "minmax", NULL));
  OK(qconfig_create(&h.config, "onnx"));
  OK(qmodel_load_bytes(&h.model, tiny.data, tiny.size));
  OK(qsession_create(&h.session, h.model, NULL));
  OK(qtrainer_create(&h.trainer, h.model, NULL));
  OK(qlayer_create(&h.layer, "linear", h.tensor, NULL, h.config, NULL, NULL, NULL));
  OK(qmodel_inspect(&h.blob, h.model));
  return 0;
}

static int drop(void **state) {
  (void)state;
  qattrs_free(h.attrs);
  qquantizer_free(h.quantizer);
  qtensor_free(h.tensor);
  qobserver_free(h.observer);
  qconfig_free(h.config);
  qsession_free(h.session);
  qtrainer_free(h.trainer);
  qmodel_free(h.model);
  qlayer_free(h.layer);
  qblob_free(h.blob);
  return 0;
}

/* The call that `as` is passed to, as a handle of its noun, is refused with this text. */
#define REFUSED(text, call)          \
  do {                               \
    FAILS(QTN_EINVAL, (text), call); \
    assert_null(out);                \
  } while (0)

/* Every noun, under a pointer that is not one of it. `text` is what the message calls it. */
static void refuse_all(void *not_one, const char *text, const char *but) {
  qtensor *out = NULL;
  qblob *bytes = NULL;
  double loss = 0;
  const qtensor *inputs[] = {h.tensor, not_one};
  void *data = NULL;
#define NOT(noun) (strcmp(but, noun) != 0)
  if (NOT("qattrs")) {
    FAILS(QTN_EINVAL, text, qattrs_set_int(not_one, "k", 1));
    FAILS(QTN_EINVAL, text, qop_run(&out, 1, "Relu", inputs, 1, not_one));
    FAILS(QTN_EINVAL, text, qtrainer_set(h.trainer, not_one));
    FAILS(QTN_EINVAL, text, qconfig_set(h.config, "*", not_one));
    FAILS(QTN_EINVAL, text, qlib_set_limits(not_one));
  }
  if (NOT("qquantizer")) {
    REFUSED(text, qtensor_quantize(&out, h.tensor, not_one));
    REFUSED(text, qop_linear(&out, h.tensor, h.tensor, NULL, not_one));
    assert_int_equal(qquantizer_count(not_one), 0);
    assert_null(qquantizer_scales(not_one));
  }
  if (NOT("qtensor")) {
    REFUSED(text, qtensor_share(&out, not_one));
    REFUSED(text, qop_linear(&out, h.tensor, h.tensor, not_one, NULL));
    REFUSED(text, qop_cat(&out, inputs, 2, 0, NULL));
    FAILS(QTN_EINVAL, text, qtensor_data_mut(&data, not_one));
    FAILS(QTN_EINVAL, text, qtensor_copy(h.tensor, not_one));
    FAILS(QTN_EINVAL, text, qtensor_save(not_one, "/nowhere/x"));
    FAILS(QTN_EINVAL, text, qobserver_observe(h.observer, not_one));
    REFUSED(text, qlayer_run(&out, h.layer, not_one));
    inputs[0] = not_one;
    REFUSED(text, qsession_run(&out, 1, h.session, inputs, 1));
    FAILS(QTN_EINVAL, text, qtrainer_step(&loss, h.trainer, inputs, 1, inputs, 1));
    inputs[0] = h.tensor;
    assert_int_equal(qtensor_rank(not_one), 0);
    assert_null(qtensor_data(not_one));
    assert_null(qtensor_quantizer(not_one));
  }
  if (NOT("qobserver")) {
    FAILS(QTN_EINVAL, text, qobserver_observe(not_one, h.tensor));
    FAILS(QTN_EINVAL, text, qobserver_merge(h.observer, not_one));
  }
  if (NOT("qconfig")) {
    qmodel *prepared = NULL;
    FAILS(QTN_EINVAL, text, qconfig_set(not_one, "*", NULL));
    FAILS(QTN_EINVAL, text, qmodel_prepare(&prepared, h.model, not_one, QTN_PTQ));
  }
  if (NOT("qmodel")) {
    qmodel *made = NULL;
    FAILS(QTN_EINVAL, text, qmodel_inspect(&bytes, not_one));
    FAILS(QTN_EINVAL, text, qmodel_save(not_one, "/nowhere/x", NULL));
    FAILS(QTN_EINVAL, text, qmodel_convert(&made, not_one, NULL));
    FAILS(QTN_EINVAL, text, qmodel_calibrate(not_one, inputs, 1));
    assert_int_equal(qmodel_input_count(not_one), 0);
    assert_null(qmodel_input_name(not_one, 0));
    assert_null(qmodel_output_name(not_one, 0));
    assert_null(qmodel_tensor_name(not_one, 0));
  }
  if (NOT("qsession")) REFUSED(text, qsession_run(&out, 1, not_one, inputs, 1));
  if (NOT("qtrainer")) {
    FAILS(QTN_EINVAL, text, qtrainer_update(not_one));
    FAILS(QTN_EINVAL, text, qtrainer_step(&loss, not_one, inputs, 1, inputs, 1));
    assert_int_equal(qtrainer_parameter_count(not_one), 0);
    assert_null(qtrainer_parameter_name(not_one, 0));
  }
  if (NOT("qlayer")) REFUSED(text, qlayer_run(&out, not_one, h.tensor));
  if (NOT("qblob")) {
    assert_null(qblob_data(not_one));
    assert_int_equal(qblob_size(not_one), 0);
  }
#undef NOT
}

static void another_noun(void **state) {
  const struct {
    void *handle;
    const char *noun;
  } all[] = {{h.attrs, "qattrs"},       {h.quantizer, "qquantizer"}, {h.tensor, "qtensor"},
             {h.observer, "qobserver"}, {h.config, "qconfig"},       {h.model, "qmodel"},
             {h.session, "qsession"},   {h.trainer, "qtrainer"},     {h.layer, "qlayer"},
             {h.blob, "qblob"}};
  (void)state;
  if (!CHECKS) skip();
  for (size_t i = 0; i < COUNT(all); ++i) {
    char text[64];
    snprintf(text, sizeof text, "is a %s, not a q", all[i].noun);
    refuse_all(all[i].handle, text, all[i].noun);
  }
}

static void no_handle(void **state) {
  struct {
    _Alignas(64) char bytes[4096];
  } memory;
  (void)state;
  if (!CHECKS) skip();
  memset(&memory, 0x5A, sizeof memory);
  refuse_all(&memory, "or one that was freed", "");
  refuse_all(memory.bytes + 1, "or one that was freed", "");
}

static void freed(void **state) {
  qtensor *t = tensor_of(QTN_FLOAT32, NULL, NULL, 0, DIMS(2, 3));
  (void)state;
  if (!CHECKS) {
    qtensor_free(t);
    skip();
  }
  qtensor_free(t);
  refuse_all(t, "or one that was freed", "");
  qtensor_free(t); /* is left alone */
}

/* What is freed with the function of another noun stays, and can be freed with its own. */
static void freed_as_another(void **state) {
  (void)state;
  if (!CHECKS) skip();
  qmodel_free((qmodel *)(void *)h.tensor);
  qtensor_free((qtensor *)(void *)h.model);
  assert_int_equal(qtensor_rank(h.tensor), 2);
  assert_int_equal(qmodel_input_count(h.model), 1);
}

/* The grid of a tensor is a handle as long as the tensor lives. */
static void borrowed(void **state) {
  qtensor *q = NULL;
  (void)state;
  OK(qtensor_quantize(&q, h.tensor, h.quantizer));
  const qquantizer *grid = qtensor_quantizer(q);
  assert_int_equal(qquantizer_count(grid), 1);
  qtensor_free(q);
  if (CHECKS) assert_int_equal(qquantizer_count(grid), 0);
}

static qstatus give_none(qtensor **inputs, size_t count, size_t index, void *ctx) {
  (void)index;
  for (size_t i = 0; i < count; ++i) inputs[i] = ctx;
  return QTN_OK;
}

/* A callback may give no handle, too. */
static void given_by_callback(void **state) {
  qmodel *int8 = NULL;
  (void)state;
  if (!CHECKS) skip();
  FAILS(QTN_EINVAL, "is a qconfig, not a qtensor",
        qmodel_quantize(&int8, NULL, h.model, h.config, give_none, 1, NULL, NULL, h.config));
  assert_null(int8);
  OK(qconfig_set(h.config, "*", h.attrs)); /* which is still there */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(another_noun, make, drop),
      cmocka_unit_test_setup_teardown(no_handle, make, drop),
      cmocka_unit_test_setup_teardown(freed, make, drop),
      cmocka_unit_test_setup_teardown(freed_as_another, make, drop),
      cmocka_unit_test_setup_teardown(borrowed, make, drop),
      cmocka_unit_test_setup_teardown(given_by_callback, make, drop),
  };
  return cmocka_run_group_tests_name("handles", tests, NULL, NULL);
}
