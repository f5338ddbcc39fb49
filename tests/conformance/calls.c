/* SPDX-License-Identifier: Apache-2.0
 *
 * One line or a few for each function that a case may call: from named arguments to the call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define TENSOR_ARG(name) handle_of(f, name, TENSOR)
#define QUANTIZER_ARG(name) handle_of(f, name, QUANTIZER)
#define OUT(kind) (void *)out_of(f, kind)

/* `static qstatus call_NAME(frame *f)` with a body that is one expression. */
#define CALL(name, ...) \
  static qstatus call_##name(frame *f) { return qtn.name(__VA_ARGS__); }
/* An accessor: its value as JSON. */
#define VALUE(name, json)                \
  static qstatus call_##name(frame *f) { \
    f->result = json;                    \
    return QTN_OK;                       \
  }

static json_t *text(const char *s) { return s ? json_string(s) : json_null(); }

static json_t *int_list(const int64_t *values, size_t count) {
  json_t *list = values ? json_array() : json_null();
  size_t i;
  for (i = 0; values && i < count; ++i) json_array_append_new(list, json_integer(values[i]));
  return list;
}

static json_t *real_list(const double *values, size_t count) {
  json_t *list = values ? json_array() : json_null();
  size_t i;
  for (i = 0; values && i < count; ++i) json_array_append_new(list, json_real(values[i]));
  return list;
}

static bool is_null(frame *f, const char *key) {
  json_t *value = json_object_get(f->with, key);
  return value && json_is_null(value);
}

/* --- lib */
CALL(qlib_set_isa, string_of(f, "isa"))
CALL(qlib_set_threads, (int32_t)int_of(f, "count"))
CALL(qlib_set_limits, attrs_of(f, "limits"))
static qstatus call_qlib_limit(frame *f) {
  int64_t number = -1;
  const qstatus status = qtn.qlib_limit(is_null(f, "out") ? NULL : &number, string_of(f, "name"));
  f->result = json_integer(number);
  return status;
}
VALUE(qlib_version, json_integer(qtn.qlib_version()))
VALUE(qstatus_name, text(qtn.qstatus_name((qstatus)int_of(f, "status"))))
VALUE(qdtype_name, text(qtn.qdtype_name((qdtype)int_of(f, "dtype"))))

/* --- attrs: on a set of their own, empty unless the case asks for NULL */
static qattrs *own_attrs(frame *f) {
  json_t *a = json_object_get(f->with, "a");
  if (a && json_is_null(a)) return NULL;
  if (!f->attrs) qtn.qattrs_create(&f->attrs);
  return f->attrs;
}

CALL(qattrs_set_int, own_attrs(f), string_of(f, "key"), int_of(f, "value"))
CALL(qattrs_set_float, own_attrs(f), string_of(f, "key"), real_of(json_object_get(f->with, "value")))
CALL(qattrs_set_string, own_attrs(f), string_of(f, "key"), string_of(f, "value"))

static qstatus call_qattrs_create(frame *f) {
  json_t *out = json_object_get(f->with, "out");
  return qtn.qattrs_create(out && json_is_null(out) ? NULL : &f->attrs);
}

static qstatus call_qattrs_set_ints(frame *f) {
  size_t count;
  const int64_t *values = ints_of(f, "values", &count);
  if (json_object_get(f->with, "count")) count = (size_t)int_of(f, "count");
  return qtn.qattrs_set_ints(own_attrs(f), string_of(f, "key"), values, count);
}

static qstatus call_qattrs_set_floats(frame *f) {
  size_t count;
  const double *values = reals_of(f, "values", &count);
  if (json_object_get(f->with, "count")) count = (size_t)int_of(f, "count");
  return qtn.qattrs_set_floats(own_attrs(f), string_of(f, "key"), values, count);
}

static qstatus call_qattrs_get_int(frame *f) {
  int64_t value = -1;
  const qstatus status = qtn.qattrs_get_int(is_null(f, "out") ? NULL : &value, own_attrs(f), string_of(f, "key"), 7);
  f->result = status == QTN_OK ? json_integer(value) : NULL;
  return status;
}

static qstatus call_qattrs_get_float(frame *f) {
  double value = -1;
  const qstatus status =
      qtn.qattrs_get_float(is_null(f, "out") ? NULL : &value, own_attrs(f), string_of(f, "key"), 0.5);
  f->result = status == QTN_OK ? json_real(value) : NULL;
  return status;
}

static qstatus call_qattrs_get_string(frame *f) {
  const char *value = NULL;
  const qstatus status =
      qtn.qattrs_get_string(is_null(f, "out") ? NULL : &value, own_attrs(f), string_of(f, "key"), "else");
  f->result = status == QTN_OK ? text(value) : NULL;
  return status;
}

static qstatus call_qattrs_get_ints(frame *f) {
  const int64_t *values = NULL;
  size_t count = 0;
  const qstatus status = qtn.qattrs_get_ints(is_null(f, "out") ? NULL : &values, is_null(f, "count") ? NULL : &count,
                                             own_attrs(f), string_of(f, "key"));
  f->result = status == QTN_OK ? int_list(values, count) : NULL;
  return status;
}

static qstatus call_qattrs_get_floats(frame *f) {
  const double *values = NULL;
  size_t count = 0;
  const qstatus status = qtn.qattrs_get_floats(is_null(f, "out") ? NULL : &values, is_null(f, "count") ? NULL : &count,
                                               own_attrs(f), string_of(f, "key"));
  f->result = status == QTN_OK ? real_list(values, count) : NULL;
  return status;
}

static qstatus call_qattrs_get_tensor(frame *f) {
  qtensor *tensor = NULL;
  const qstatus status = qtn.qattrs_get_tensor(is_null(f, "out") ? NULL : &tensor, own_attrs(f), string_of(f, "key"));
  qtn.qtensor_free(tensor);
  f->result = status == QTN_OK ? json_null() : NULL;
  return status;
}

VALUE(qattrs_count, json_integer((json_int_t)qtn.qattrs_count(own_attrs(f))))
VALUE(qattrs_key, text(qtn.qattrs_key(own_attrs(f), 0)))
VALUE(qattrs_kind, text(qtn.qattrs_kind(own_attrs(f), string_of(f, "key"))))

/* --- quantizer */
static qstatus call_qquantizer_create(frame *f) {
  size_t count, zeros;
  const double *scales = reals_of(f, "scales", &count);
  const int64_t *zero_points = ints_of(f, "zero_points", &zeros);
  if (json_object_get(f->with, "count")) count = (size_t)int_of(f, "count");
  return qtn.qquantizer_create(OUT(QUANTIZER), dtype_of(f, "dtype"), scheme_of(f, "scheme"), (int32_t)int_of(f, "axis"),
                               scales, zero_points, count, attrs_of(f, "attrs"));
}

static qstatus call_qquantizer_choose(frame *f) {
  size_t count, others;
  const double *mins = reals_of(f, "mins", &count), *maxs = reals_of(f, "maxs", &others);
  if (json_object_get(f->with, "count")) count = (size_t)int_of(f, "count");
  return qtn.qquantizer_choose(OUT(QUANTIZER), dtype_of(f, "dtype"), scheme_of(f, "scheme"), (int32_t)int_of(f, "axis"),
                               mins, maxs, count, attrs_of(f, "attrs"));
}

CALL(qquantizer_choose_dynamic, OUT(QUANTIZER), dtype_of(f, "dtype"), TENSOR_ARG("x"), attrs_of(f, "attrs"))
VALUE(qquantizer_dtype, text(qtn.qdtype_name(qtn.qquantizer_dtype(QUANTIZER_ARG("q")))))
VALUE(qquantizer_scheme, json_integer(qtn.qquantizer_scheme(QUANTIZER_ARG("q"))))
VALUE(qquantizer_axis, json_integer(qtn.qquantizer_axis(QUANTIZER_ARG("q"))))
VALUE(qquantizer_count, json_integer((json_int_t)qtn.qquantizer_count(QUANTIZER_ARG("q"))))
VALUE(qquantizer_scales, real_list(qtn.qquantizer_scales(QUANTIZER_ARG("q")), qtn.qquantizer_count(QUANTIZER_ARG("q"))))
VALUE(qquantizer_zero_points,
      int_list(qtn.qquantizer_zero_points(QUANTIZER_ARG("q")), qtn.qquantizer_count(QUANTIZER_ARG("q"))))
static json_t *float_zeros(const qquantizer *q) {
  const double *zeros = qtn.qquantizer_float_zero_points(q);
  return real_list(zeros, zeros ? qtn.qquantizer_count(q) : 0);
}
VALUE(qquantizer_float_zero_points, float_zeros(QUANTIZER_ARG("q")))
VALUE(qquantizer_block_size, json_integer(qtn.qquantizer_block_size(QUANTIZER_ARG("q"))))
VALUE(qquantizer_quant_min, json_integer(qtn.qquantizer_quant_min(QUANTIZER_ARG("q"))))
VALUE(qquantizer_quant_max, json_integer(qtn.qquantizer_quant_max(QUANTIZER_ARG("q"))))
VALUE(qquantizer_numerics, text(qtn.qquantizer_numerics(QUANTIZER_ARG("q"))))

/* --- tensor */
static qstatus call_qtensor_create(frame *f) {
  const qdtype dtype = dtype_of(f, "dtype");
  size_t rank, nbytes;
  const int64_t *shape = ints_of(f, "shape", &rank);
  const void *data = data_of(f, dtype, &nbytes);
  if (json_object_get(f->with, "rank")) rank = (size_t)int_of(f, "rank");
  return qtn.qtensor_create(OUT(TENSOR), dtype, shape, rank, QUANTIZER_ARG("quantizer"), data, nbytes);
}

static void free_data(void *data, void *ctx) {
  (void)data;
  free(ctx);
}

/* "misaligned": bytes by which the data are moved from an aligned address. */
static qstatus call_qtensor_wrap(frame *f) {
  const qdtype dtype = dtype_of(f, "dtype");
  size_t rank, nbytes;
  const int64_t *shape = ints_of(f, "shape", &rank);
  const void *data = data_of(f, dtype, &nbytes);
  char *kept = data ? calloc(1, nbytes + 64) : NULL, *moved = kept ? kept + int_of(f, "misaligned") : NULL;
  qstatus status;
  if (kept) memcpy(moved, data, nbytes);
  status =
      qtn.qtensor_wrap(OUT(TENSOR), dtype, shape, rank, QUANTIZER_ARG("quantizer"), moved, nbytes, free_data, kept);
  if (status != QTN_OK) free(kept);
  return status;
}

CALL(qtensor_share, OUT(TENSOR), TENSOR_ARG("t"))
CALL(qtensor_quantize, OUT(TENSOR), TENSOR_ARG("x"), QUANTIZER_ARG("quantizer"))
CALL(qtensor_dequantize, OUT(TENSOR), TENSOR_ARG("x"))
CALL(qtensor_select, OUT(TENSOR), TENSOR_ARG("t"), (int32_t)int_of(f, "axis"), int_of(f, "index"))
CALL(qtensor_slice, OUT(TENSOR), TENSOR_ARG("t"), (int32_t)int_of(f, "axis"), int_of(f, "start"), int_of(f, "stop"),
     int_of(f, "step"))
CALL(qtensor_contiguous, OUT(TENSOR), TENSOR_ARG("t"))
CALL(qtensor_int_repr, OUT(TENSOR), TENSOR_ARG("t"))
CALL(qtensor_copy, TENSOR_ARG("dst"), TENSOR_ARG("src"))
CALL(qtensor_save, TENSOR_ARG("t"), path_of(f, "path"))
CALL(qtensor_load, OUT(TENSOR), path_of(f, "path"))
CALL(qtensor_save_npy, TENSOR_ARG("t"), path_of(f, "path"))
CALL(qtensor_load_npy, OUT(TENSOR), path_of(f, "path"))
VALUE(qtensor_dtype, text(qtn.qdtype_name(qtn.qtensor_dtype(TENSOR_ARG("t")))))
VALUE(qtensor_rank, json_integer((json_int_t)qtn.qtensor_rank(TENSOR_ARG("t"))))
VALUE(qtensor_shape, int_list(qtn.qtensor_shape(TENSOR_ARG("t")), qtn.qtensor_rank(TENSOR_ARG("t"))))
VALUE(qtensor_strides, int_list(qtn.qtensor_strides(TENSOR_ARG("t")), qtn.qtensor_rank(TENSOR_ARG("t"))))
VALUE(qtensor_numel, json_integer(qtn.qtensor_numel(TENSOR_ARG("t"))))
VALUE(qtensor_nbytes, json_integer((json_int_t)qtn.qtensor_nbytes(TENSOR_ARG("t"))))
VALUE(qtensor_quantizer, json_boolean(qtn.qtensor_quantizer(TENSOR_ARG("t")) != NULL))

static qstatus call_qtensor_reshape(frame *f) {
  size_t rank;
  const int64_t *shape = ints_of(f, "shape", &rank);
  if (json_object_get(f->with, "rank")) rank = (size_t)int_of(f, "rank");
  return qtn.qtensor_reshape(OUT(TENSOR), TENSOR_ARG("t"), shape, rank);
}

static qstatus call_qtensor_permute(frame *f) {
  size_t count, i;
  const int64_t *wide = ints_of(f, "axes", &count);
  int32_t *axes = wide ? scratch(f, count * sizeof *axes) : NULL;
  for (i = 0; axes && i < count; ++i) axes[i] = (int32_t)wide[i];
  if (json_object_get(f->with, "count")) count = (size_t)int_of(f, "count");
  return qtn.qtensor_permute(OUT(TENSOR), TENSOR_ARG("t"), axes, count);
}

static qstatus call_qtensor_equal(frame *f) {
  int32_t equal = -1;
  const qstatus status = qtn.qtensor_equal(is_null(f, "out") ? NULL : &equal, TENSOR_ARG("a"), TENSOR_ARG("b"));
  f->result = json_integer(equal);
  return status;
}

static qstatus call_qtensor_item(frame *f) {
  double item = -1;
  const qstatus status = qtn.qtensor_item(is_null(f, "out") ? NULL : &item, TENSOR_ARG("t"));
  f->result = json_real(item);
  return status;
}

static qstatus call_qtensor_data_mut(frame *f) {
  void *data = f;
  const qstatus status = qtn.qtensor_data_mut(is_null(f, "out") ? NULL : &data, TENSOR_ARG("t"));
  f->result = json_boolean(data != NULL);
  return status;
}

/* "cap": the size of the buffer, 4096 unless given; null: no buffer, of that size. */
static qstatus call_qtensor_describe(frame *f) {
  char *buf = scratch(f, 4096);
  size_t length = 99, cap = json_object_get(f->with, "cap") ? (size_t)int_of(f, "cap") : 4096;
  const qstatus status = qtn.qtensor_describe(is_null(f, "buf") ? NULL : buf, cap,
                                              is_null(f, "out_len") ? NULL : &length, TENSOR_ARG("t"));
  f->result = json_pack("{s:s, s:I}", "text", buf, "length", (json_int_t)length);
  return status;
}

static const char **strings_of(frame *f, const char *key, size_t *count) {
  json_t *list = json_object_get(f->with, key);
  const char **strings;
  size_t i;
  *count = json_array_size(list);
  if (!json_is_array(list)) return NULL;
  strings = scratch(f, *count * sizeof *strings);
  for (i = 0; i < *count; ++i) strings[i] = json_string_value(json_array_get(list, i));
  return strings;
}

static qstatus call_qtensor_save_all(frame *f) {
  size_t count, names_count;
  const char **names = strings_of(f, "names", &names_count);
  const qtensor **tensors = tensors_of(f, "tensors", &count);
  if (json_object_get(f->with, "count")) count = (size_t)int_of(f, "count");
  return qtn.qtensor_save_all(path_of(f, "path"), names, tensors, count);
}

CALL(qtensor_load_named, OUT(TENSOR), path_of(f, "path"), string_of(f, "name"))
CALL(qtensor_load_rows, OUT(TENSOR), path_of(f, "path"), string_of(f, "name"), int_of(f, "start"), int_of(f, "stop"))
CALL(qtensor_inspect, OUT(BLOB), path_of(f, "path"))

/* The layouts that DLPack fixes. "device" is the argument, the tensor holds two floats; "managed": null is NULL. */
typedef struct dl_tensor {
  void *data;
  struct {
    int32_t type, id;
  } device;
  int32_t rank;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
  dl_tensor tensor;
  void *context;
  void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  dl_tensor tensor;
};

static void free_managed(struct DLManagedTensor *managed) { free(managed); }
static void free_versioned(struct DLManagedTensorVersioned *managed) { free(managed); }

static void fill(frame *f, dl_tensor *t) {
  static float values[2] = {1, 2};
  static int64_t shape[1] = {2};
  t->data = values;
  t->device.type = (int32_t)int_of(f, "device");
  t->rank = 1;
  t->dtype.code = 2;
  t->dtype.bits = 32;
  t->dtype.lanes = 1;
  t->shape = shape;
}

static qstatus call_qtensor_from_dlpack(frame *f) {
  struct DLManagedTensor *managed = is_null(f, "managed") ? NULL : calloc(1, sizeof *managed);
  qstatus status;
  if (managed) {
    fill(f, &managed->tensor);
    managed->deleter = free_managed;
  }
  status = qtn.qtensor_from_dlpack(OUT(TENSOR), managed);
  if (status != QTN_OK) free(managed); /* a failure leaves it with its owner */
  return status;
}

static qstatus call_qtensor_from_dlpack_versioned(frame *f) {
  struct DLManagedTensorVersioned *managed = is_null(f, "managed") ? NULL : calloc(1, sizeof *managed);
  qstatus status;
  if (managed) {
    fill(f, &managed->tensor);
    managed->major = 1;
    managed->deleter = free_versioned;
  }
  status = qtn.qtensor_from_dlpack_versioned(OUT(TENSOR), managed);
  if (status != QTN_OK) free(managed);
  return status;
}

/* Give the number of dimensions. */
static qstatus call_qtensor_to_dlpack(frame *f) {
  struct DLManagedTensor *managed = NULL;
  const qstatus status = qtn.qtensor_to_dlpack(is_null(f, "out") ? NULL : &managed, TENSOR_ARG("t"));
  f->result = json_integer(managed ? managed->tensor.rank : -1);
  if (managed) managed->deleter(managed);
  return status;
}

static qstatus call_qtensor_to_dlpack_versioned(frame *f) {
  struct DLManagedTensorVersioned *managed = NULL;
  const qstatus status = qtn.qtensor_to_dlpack_versioned(is_null(f, "out") ? NULL : &managed, TENSOR_ARG("t"));
  f->result = json_integer(managed ? managed->tensor.rank : -1);
  if (managed) managed->deleter(managed);
  return status;
}

/* --- observer */
CALL(qobserver_create, OUT(OBSERVER), string_of(f, "kind"), attrs_of(f, "attrs"))
CALL(qobserver_observe, handle_of(f, "o", OBSERVER), TENSOR_ARG("x"))
CALL(qobserver_merge, handle_of(f, "o", OBSERVER), handle_of(f, "other", OBSERVER))
CALL(qobserver_quantizer, OUT(QUANTIZER), handle_of(f, "o", OBSERVER))
CALL(qobserver_save, OUT(BLOB), handle_of(f, "o", OBSERVER))

CALL(qobserver_save_file, handle_of(f, "o", OBSERVER), path_of(f, "path"))
CALL(qobserver_load_file, OUT(OBSERVER), path_of(f, "path"))

/* "data": a list of bytes, or a blob that a call has given. */
static const void *bytes_of(frame *f, size_t *nbytes) {
  const qblob *blob;
  if (json_is_array(json_object_get(f->with, "data"))) return data_of(f, QTN_UINT8, nbytes);
  blob = handle_of(f, "data", BLOB);
  *nbytes = json_object_get(f->with, "nbytes") ? (size_t)int_of(f, "nbytes") : qtn.qblob_size(blob);
  return qtn.qblob_data(blob);
}

static qstatus call_qobserver_load(frame *f) {
  size_t nbytes;
  const void *data = bytes_of(f, &nbytes);
  return qtn.qobserver_load(OUT(OBSERVER), data, nbytes);
}

/* --- op */
/* "output_count", 1 unless given: that many tensors are expected, and what they are put over is no NULL. */
static size_t expect_outputs(frame *f) {
  size_t i, outputs = json_object_get(f->with, "output_count") ? (size_t)int_of(f, "output_count") : 1;
  if (outputs > MAX_OUTPUTS) outputs = MAX_OUTPUTS;
  f->output_kind = TENSOR;
  f->output_count = outputs;
  for (i = 0; i < outputs; ++i) f->outputs[i] = f;
  return outputs;
}

static qstatus call_qop_run(frame *f) {
  size_t count, outputs = expect_outputs(f);
  const qtensor **inputs = tensors_of(f, "inputs", &count);
  json_t *out = json_object_get(f->with, "outputs");
  if (json_object_get(f->with, "input_count")) count = (size_t)int_of(f, "input_count");
  if (out && json_is_null(out)) f->output_count = 0;
  return qtn.qop_run(f->output_count || !out ? (void *)f->outputs : NULL, outputs, string_of(f, "op"), inputs, count,
                     attrs_of(f, "attrs"));
}

/* The operator that cases register: each element times the attribute "factor". */
static qstatus infer_scale(qcall *call, void *ctx) {
  (void)ctx;
  return qtn.qcall_set_output_type(call, 0, qtn.qcall_input_dtype(call, 0), qtn.qcall_input_shape(call, 0),
                                   qtn.qcall_input_rank(call, 0));
}

static qstatus run_scale(qcall *call, void *ctx) {
  const qtensor *x = qtn.qcall_input(call, 0);
  const float *from = qtn.qtensor_data(x);
  double factor = 0;
  void *to = NULL;
  int64_t i;
  qstatus status = qtn.qattrs_get_float(&factor, qtn.qcall_attrs(call), "factor", 0);
  (void)ctx;
  if (!qtn.qattrs_kind(qtn.qcall_attrs(call), "factor")) return qtn.qcall_fail(call, QTN_EINVAL, "factor is missing");
  if (status == QTN_OK) status = qtn.qtensor_data_mut(&to, qtn.qcall_output(call, 0));
  for (i = 0; status == QTN_OK && i < qtn.qtensor_numel(x); ++i) ((float *)to)[i] = from[i] * (float)factor;
  return status;
}

CALL(qop_register, string_of(f, "domain"), string_of(f, "name"), int_of(f, "since_version"),
     is_null(f, "infer") ? NULL : infer_scale, is_null(f, "run") ? NULL : run_scale, NULL, NULL, NULL)
CALL(qop_unregister, string_of(f, "domain"), string_of(f, "name"), int_of(f, "since_version"))

/* Calls are there in callbacks only: outside of them there is none. */
VALUE(qcall_input_count, json_integer((json_int_t)qtn.qcall_input_count(NULL)))
VALUE(qcall_input_dtype, json_integer(qtn.qcall_input_dtype(NULL, 0)))
VALUE(qcall_input_rank, json_integer((json_int_t)qtn.qcall_input_rank(NULL, 0)))
VALUE(qcall_input_shape, qtn.qcall_input_shape(NULL, 0) ? json_true() : json_null())
VALUE(qcall_input, qtn.qcall_input(NULL, 0) ? json_true() : json_null())
VALUE(qcall_attrs, qtn.qcall_attrs(NULL) ? json_true() : json_null())
VALUE(qcall_output_count, json_integer((json_int_t)qtn.qcall_output_count(NULL)))
VALUE(qcall_output, qtn.qcall_output(NULL, 0) ? json_true() : json_null())
CALL(qcall_set_output_type, NULL, (size_t)int_of(f, "index"), QTN_FLOAT32, NULL, 0)
CALL(qcall_fail, NULL, QTN_EINVAL, string_of(f, "message"))

CALL(qop_linear, OUT(TENSOR), TENSOR_ARG("x"), TENSOR_ARG("weight"), TENSOR_ARG("bias"), QUANTIZER_ARG("out_quantizer"))
CALL(qop_conv2d, OUT(TENSOR), TENSOR_ARG("x"), TENSOR_ARG("weight"), TENSOR_ARG("bias"), QUANTIZER_ARG("out_quantizer"),
     attrs_of(f, "attrs"))
CALL(qop_relu, OUT(TENSOR), TENSOR_ARG("x"))
CALL(qop_fake_quantize, OUT(TENSOR), TENSOR_ARG("x"), QUANTIZER_ARG("quantizer"))
CALL(qop_fake_quantize_backward, OUT(TENSOR), TENSOR_ARG("dy"), TENSOR_ARG("x"), QUANTIZER_ARG("quantizer"))
CALL(qop_add, OUT(TENSOR), TENSOR_ARG("a"), TENSOR_ARG("b"), QUANTIZER_ARG("out_quantizer"))
CALL(qop_matmul, OUT(TENSOR), TENSOR_ARG("a"), TENSOR_ARG("b"), QUANTIZER_ARG("out_quantizer"))
CALL(qop_max_pool2d, OUT(TENSOR), TENSOR_ARG("x"), attrs_of(f, "attrs"))
CALL(qop_avg_pool2d, OUT(TENSOR), TENSOR_ARG("x"), QUANTIZER_ARG("out_quantizer"), attrs_of(f, "attrs"))

static qstatus call_qop_cat(frame *f) {
  size_t count;
  const qtensor **inputs = tensors_of(f, "inputs", &count);
  if (json_object_get(f->with, "input_count")) count = (size_t)int_of(f, "input_count");
  return qtn.qop_cat(OUT(TENSOR), inputs, count, (int32_t)int_of(f, "axis"), QUANTIZER_ARG("out_quantizer"));
}

/* --- config, model, session */
CALL(qconfig_create, OUT(CONFIG), string_of(f, "name"))
CALL(qconfig_set, handle_of(f, "c", CONFIG), string_of(f, "selector"), attrs_of(f, "settings"))
CALL(qconfig_save, handle_of(f, "c", CONFIG), path_of(f, "path"))
CALL(qconfig_load, OUT(CONFIG), path_of(f, "path"))
CALL(qmodel_load, OUT(MODEL), path_of(f, "path"))
CALL(qmodel_save, handle_of(f, "m", MODEL), path_of(f, "path"), attrs_of(f, "attrs"))
CALL(qmodel_save_bytes, OUT(BLOB), handle_of(f, "m", MODEL), attrs_of(f, "attrs"))

static qstatus call_qmodel_fuse(frame *f) {
  size_t count;
  const char **nodes = strings_of(f, "nodes", &count);
  if (json_object_get(f->with, "count")) count = (size_t)int_of(f, "count");
  return qtn.qmodel_fuse(OUT(MODEL), handle_of(f, "m", MODEL), nodes, count);
}

CALL(qmodel_prepare, OUT(MODEL), handle_of(f, "m", MODEL), handle_of(f, "config", CONFIG), (qmode)int_of(f, "mode"))
CALL(qmodel_convert, OUT(MODEL), handle_of(f, "prepared", MODEL), attrs_of(f, "attrs"))
CALL(qsession_create, OUT(SESSION), handle_of(f, "m", MODEL), attrs_of(f, "attrs"))
VALUE(qmodel_input_count, json_integer((json_int_t)qtn.qmodel_input_count(handle_of(f, "m", MODEL))))
VALUE(qmodel_output_count, json_integer((json_int_t)qtn.qmodel_output_count(handle_of(f, "m", MODEL))))
VALUE(qmodel_tensor_count, json_integer((json_int_t)qtn.qmodel_tensor_count(handle_of(f, "m", MODEL))))
VALUE(qmodel_tensor_name, text(qtn.qmodel_tensor_name(handle_of(f, "m", MODEL), (size_t)int_of(f, "index"))))
CALL(qmodel_tensor, OUT(TENSOR), handle_of(f, "m", MODEL), string_of(f, "name"))
CALL(qmodel_set_tensor, handle_of(f, "m", MODEL), string_of(f, "name"), TENSOR_ARG("t"))
VALUE(qmodel_input_name, text(qtn.qmodel_input_name(handle_of(f, "m", MODEL), (size_t)int_of(f, "index"))))
VALUE(qmodel_input_dtype,
      text(qtn.qdtype_name(qtn.qmodel_input_dtype(handle_of(f, "m", MODEL), (size_t)int_of(f, "index")))))
VALUE(qmodel_input_rank,
      json_integer((json_int_t)qtn.qmodel_input_rank(handle_of(f, "m", MODEL), (size_t)int_of(f, "index"))))
VALUE(qmodel_input_shape, int_list(qtn.qmodel_input_shape(handle_of(f, "m", MODEL), (size_t)int_of(f, "index")),
                                   qtn.qmodel_input_rank(handle_of(f, "m", MODEL), (size_t)int_of(f, "index"))))
VALUE(qmodel_output_name, text(qtn.qmodel_output_name(handle_of(f, "m", MODEL), (size_t)int_of(f, "index"))))

CALL(qmodel_inspect, OUT(BLOB), handle_of(f, "m", MODEL))

static qstatus call_qmodel_load_bytes(frame *f) {
  size_t nbytes;
  const void *data = bytes_of(f, &nbytes);
  return qtn.qmodel_load_bytes(OUT(MODEL), data, nbytes);
}

static qstatus call_qsession_profile(frame *f) {
  size_t count;
  const qtensor **inputs = tensors_of(f, "inputs", &count);
  return qtn.qsession_profile(OUT(BLOB), handle_of(f, "s", SESSION), inputs, count);
}

static qstatus call_qmodel_calibrate(frame *f) {
  size_t count;
  const qtensor **inputs = tensors_of(f, "inputs", &count);
  return qtn.qmodel_calibrate(handle_of(f, "prepared", MODEL), inputs, count);
}

CALL(qmodel_save_calibration, handle_of(f, "prepared", MODEL), path_of(f, "path"))
CALL(qmodel_load_calibration, handle_of(f, "prepared", MODEL), path_of(f, "path"))

static qstatus call_qmodel_merge_calibrations(frame *f) {
  size_t count, i;
  const char **parts = strings_of(f, "parts", &count);
  for (i = 0; parts && i < count; ++i) parts[i] = path_from(f, parts[i]);
  if (json_object_get(f->with, "count")) count = (size_t)int_of(f, "count");
  return qtn.qmodel_merge_calibrations(path_of(f, "path"), parts, count);
}

/* "report": the name that the report of a call gets. */
static void keep_report(frame *f, qblob *report) {
  handle *h = &f->handles[f->handle_count];
  if (!report) return;
  if (f->handle_count == MAX_HANDLES) {
    malformed(f, "a case has too many handles");
    qtn.qblob_free(report);
    return;
  }
  snprintf(h->name, sizeof h->name, "%s", string_of(f, "report"));
  h->kind = BLOB;
  h->pointer = report;
  ++f->handle_count;
}

/* "samples": of a model with one input. */
static qstatus give_sample(qtensor **inputs, size_t input_count, size_t index, void *ctx) {
  const qtensor **samples = ctx;
  return input_count == 1 ? qtn.qtensor_share(inputs, samples[index]) : QTN_EINVAL;
}

static qstatus call_qmodel_quantize(frame *f) {
  size_t count;
  const qtensor **samples = tensors_of(f, "samples", &count);
  qblob *report = NULL;
  const qstatus status = qtn.qmodel_quantize(
      OUT(MODEL), string_of(f, "report") ? &report : NULL, handle_of(f, "m", MODEL), handle_of(f, "config", CONFIG),
      is_null(f, "sample") ? NULL : give_sample, count, attrs_of(f, "attrs"), NULL, samples);
  keep_report(f, report);
  return status;
}

/* "inputs" and "targets": of batch i, of a model with one input and one output; the same in every epoch. */
typedef struct batches {
  const qtensor **inputs, **targets;
} batches;

static qstatus give_batch(qtensor **inputs, size_t input_count, qtensor **targets, size_t target_count, size_t epoch,
                          size_t index, void *ctx) {
  const batches *all = ctx;
  const qstatus status =
      input_count == 1 && target_count == 1 ? qtn.qtensor_share(inputs, all->inputs[index]) : QTN_EINVAL;
  (void)epoch;
  return status == QTN_OK ? qtn.qtensor_share(targets, all->targets[index]) : status;
}

static qstatus call_qmodel_quantize_qat(frame *f) {
  size_t count, target_count;
  batches all;
  qblob *report = NULL;
  qstatus status;
  all.inputs = tensors_of(f, "inputs", &count);
  all.targets = tensors_of(f, "targets", &target_count);
  if (count != target_count) malformed(f, "%zu inputs, but %zu targets", count, target_count);
  status = qtn.qmodel_quantize_qat(OUT(MODEL), string_of(f, "report") ? &report : NULL, handle_of(f, "m", MODEL),
                                   handle_of(f, "config", CONFIG), is_null(f, "batch") ? NULL : give_batch, count, 1,
                                   attrs_of(f, "attrs"), NULL, &all);
  keep_report(f, report);
  return status;
}

static qstatus call_qreport_summary(frame *f) {
  qblob *text = NULL;
  const qstatus status = qtn.qreport_summary(is_null(f, "out") ? NULL : &text, string_of(f, "report"));
  if (text) f->result = json_stringn(qtn.qblob_data(text), qtn.qblob_size(text));
  qtn.qblob_free(text);
  return status;
}

CALL(qmodel_quantize_dynamic, OUT(MODEL), handle_of(f, "m", MODEL), handle_of(f, "config", CONFIG),
     attrs_of(f, "attrs"))
CALL(qmodel_quantize_weights, OUT(MODEL), handle_of(f, "m", MODEL), attrs_of(f, "attrs"))

static qstatus call_qsession_run(frame *f) {
  size_t count, outputs = expect_outputs(f);
  const qtensor **inputs = tensors_of(f, "inputs", &count);
  return qtn.qsession_run((void *)f->outputs, outputs, handle_of(f, "s", SESSION), inputs, count);
}

CALL(qsession_bind, handle_of(f, "s", SESSION), (size_t)int_of(f, "output"), (size_t)int_of(f, "input"))
CALL(qsession_reset, handle_of(f, "s", SESSION))

/* --- layer */
CALL(qlayer_create, OUT(LAYER), string_of(f, "kind"), TENSOR_ARG("weight"), TENSOR_ARG("bias"),
     handle_of(f, "config", CONFIG), QUANTIZER_ARG("x_quantizer"), QUANTIZER_ARG("out_quantizer"), attrs_of(f, "attrs"))
CALL(qlayer_run, OUT(TENSOR), handle_of(f, "layer", LAYER), TENSOR_ARG("x"))
CALL(qlayer_weight, OUT(TENSOR), handle_of(f, "layer", LAYER))
CALL(qlayer_bias, OUT(TENSOR), handle_of(f, "layer", LAYER))

/* --- trainer: a step gives the loss */
CALL(qtrainer_create, OUT(TRAINER), handle_of(f, "m", MODEL), attrs_of(f, "attrs"))
CALL(qtrainer_update, handle_of(f, "t", TRAINER))
CALL(qtrainer_set, handle_of(f, "t", TRAINER), attrs_of(f, "attrs"))
CALL(qtrainer_set_group, handle_of(f, "t", TRAINER), string_of(f, "selector"), attrs_of(f, "settings"))
CALL(qtrainer_parameter, OUT(TENSOR), handle_of(f, "t", TRAINER), (size_t)int_of(f, "index"))
CALL(qtrainer_gradient, OUT(TENSOR), handle_of(f, "t", TRAINER), (size_t)int_of(f, "index"))
CALL(qtrainer_buffer, OUT(TENSOR), handle_of(f, "t", TRAINER), (size_t)int_of(f, "index"))
CALL(qtrainer_model, OUT(MODEL), handle_of(f, "t", TRAINER))
CALL(qtrainer_save, handle_of(f, "t", TRAINER), path_of(f, "path"))
CALL(qtrainer_load, handle_of(f, "t", TRAINER), path_of(f, "path"))
CALL(qtrainer_save_bytes, OUT(BLOB), handle_of(f, "t", TRAINER))

static qstatus call_qtrainer_load_bytes(frame *f) {
  size_t nbytes;
  const void *data = bytes_of(f, &nbytes);
  return qtn.qtrainer_load_bytes(handle_of(f, "t", TRAINER), data, nbytes);
}

VALUE(qtrainer_parameter_count, json_integer((json_int_t)qtn.qtrainer_parameter_count(handle_of(f, "t", TRAINER))))
VALUE(qtrainer_parameter_name,
      text(qtn.qtrainer_parameter_name(handle_of(f, "t", TRAINER), (size_t)int_of(f, "index"))))
VALUE(qtrainer_buffer_count, json_integer((json_int_t)qtn.qtrainer_buffer_count(handle_of(f, "t", TRAINER))))
VALUE(qtrainer_buffer_name, text(qtn.qtrainer_buffer_name(handle_of(f, "t", TRAINER), (size_t)int_of(f, "index"))))

typedef qstatus (*train_function)(double *out_loss, qtrainer *t, const qtensor *const *inputs, size_t input_count,
                                  const qtensor *const *targets, size_t target_count);

static qstatus train(frame *f, train_function function) {
  size_t input_count, target_count;
  const qtensor **inputs = tensors_of(f, "inputs", &input_count), **targets = tensors_of(f, "targets", &target_count);
  double loss = -1;
  qstatus status;
  if (json_object_get(f->with, "input_count")) input_count = (size_t)int_of(f, "input_count");
  if (json_object_get(f->with, "target_count")) target_count = (size_t)int_of(f, "target_count");
  status = function(is_null(f, "out_loss") ? NULL : &loss, handle_of(f, "t", TRAINER), inputs, input_count, targets,
                    target_count);
  if (status != QTN_OK && !is_null(f, "out_loss") && loss != 0) malformed(f, "the loss is %g after the failure", loss);
  f->result = json_real(loss);
  return status;
}

static qstatus call_qtrainer_step(frame *f) { return train(f, qtn.qtrainer_step); }
static qstatus call_qtrainer_backward(frame *f) { return train(f, qtn.qtrainer_backward); }

static qstatus call_qtrainer_evaluate(frame *f) {
  size_t count, outputs = expect_outputs(f);
  const qtensor **inputs = tensors_of(f, "inputs", &count);
  if (is_null(f, "outputs")) f->output_count = 0;
  if (json_object_get(f->with, "input_count")) count = (size_t)int_of(f, "input_count");
  return qtn.qtrainer_evaluate(f->output_count ? (void *)f->outputs : NULL, outputs, handle_of(f, "t", TRAINER), inputs,
                               count);
}

static const struct {
  const char *name;
  qstatus (*run)(frame *f);
} kCalls[] = {
#define ROW(name) \
  { #name, call_##name }
    ROW(qlib_version),
    ROW(qlib_set_isa),
    ROW(qlib_set_threads),
    ROW(qlib_set_limits),
    ROW(qlib_limit),
    ROW(qstatus_name),
    ROW(qdtype_name),
    ROW(qattrs_create),
    ROW(qattrs_set_int),
    ROW(qattrs_count),
    ROW(qattrs_key),
    ROW(qattrs_kind),
    ROW(qattrs_get_int),
    ROW(qattrs_get_float),
    ROW(qattrs_get_string),
    ROW(qattrs_get_ints),
    ROW(qattrs_get_floats),
    ROW(qattrs_get_tensor),
    ROW(qcall_input_count),
    ROW(qcall_input_dtype),
    ROW(qcall_input_rank),
    ROW(qcall_input_shape),
    ROW(qcall_input),
    ROW(qcall_attrs),
    ROW(qcall_output_count),
    ROW(qcall_output),
    ROW(qcall_set_output_type),
    ROW(qcall_fail),
    ROW(qattrs_set_float),
    ROW(qattrs_set_string),
    ROW(qattrs_set_ints),
    ROW(qattrs_set_floats),
    ROW(qquantizer_create),
    ROW(qquantizer_choose),
    ROW(qquantizer_choose_dynamic),
    ROW(qquantizer_dtype),
    ROW(qquantizer_scheme),
    ROW(qquantizer_axis),
    ROW(qquantizer_count),
    ROW(qquantizer_scales),
    ROW(qquantizer_float_zero_points),
    ROW(qquantizer_zero_points),
    ROW(qquantizer_block_size),
    ROW(qquantizer_quant_min),
    ROW(qquantizer_quant_max),
    ROW(qquantizer_numerics),
    ROW(qtensor_create),
    ROW(qtensor_wrap),
    ROW(qtensor_share),
    ROW(qtensor_dtype),
    ROW(qtensor_rank),
    ROW(qtensor_shape),
    ROW(qtensor_strides),
    ROW(qtensor_numel),
    ROW(qtensor_nbytes),
    ROW(qtensor_quantizer),
    ROW(qtensor_data_mut),
    ROW(qtensor_quantize),
    ROW(qtensor_dequantize),
    ROW(qtensor_select),
    ROW(qtensor_slice),
    ROW(qtensor_permute),
    ROW(qtensor_reshape),
    ROW(qtensor_contiguous),
    ROW(qtensor_int_repr),
    ROW(qtensor_equal),
    ROW(qtensor_copy),
    ROW(qtensor_item),
    ROW(qtensor_describe),
    ROW(qtensor_save),
    ROW(qtensor_load),
    ROW(qtensor_save_npy),
    ROW(qtensor_load_npy),
    ROW(qtensor_save_all),
    ROW(qtensor_load_named),
    ROW(qtensor_load_rows),
    ROW(qtensor_inspect),
    ROW(qtensor_to_dlpack),
    ROW(qtensor_to_dlpack_versioned),
    ROW(qtensor_from_dlpack_versioned),
    ROW(qmodel_load_bytes),
    ROW(qmodel_inspect),
    ROW(qsession_profile),
    ROW(qtensor_from_dlpack),
    ROW(qobserver_create),
    ROW(qobserver_observe),
    ROW(qobserver_merge),
    ROW(qobserver_quantizer),
    ROW(qobserver_save),
    ROW(qobserver_load),
    ROW(qobserver_save_file),
    ROW(qobserver_load_file),
    ROW(qop_run),
    ROW(qop_register),
    ROW(qop_unregister),
    ROW(qop_linear),
    ROW(qop_conv2d),
    ROW(qop_relu),
    ROW(qop_fake_quantize),
    ROW(qop_fake_quantize_backward),
    ROW(qop_add),
    ROW(qop_matmul),
    ROW(qop_cat),
    ROW(qop_max_pool2d),
    ROW(qop_avg_pool2d),
    ROW(qconfig_create),
    ROW(qconfig_set),
    ROW(qconfig_save),
    ROW(qconfig_load),
    ROW(qmodel_load),
    ROW(qmodel_save),
    ROW(qmodel_save_bytes),
    ROW(qmodel_fuse),
    ROW(qmodel_prepare),
    ROW(qmodel_calibrate),
    ROW(qmodel_convert),
    ROW(qmodel_save_calibration),
    ROW(qmodel_load_calibration),
    ROW(qmodel_merge_calibrations),
    ROW(qmodel_quantize),
    ROW(qmodel_quantize_dynamic),
    ROW(qmodel_quantize_weights),
    ROW(qmodel_quantize_qat),
    ROW(qreport_summary),
    ROW(qmodel_input_count),
    ROW(qmodel_output_count),
    ROW(qmodel_input_name),
    ROW(qmodel_tensor_count),
    ROW(qmodel_tensor_name),
    ROW(qmodel_tensor),
    ROW(qmodel_set_tensor),
    ROW(qmodel_output_name),
    ROW(qmodel_input_dtype),
    ROW(qmodel_input_rank),
    ROW(qmodel_input_shape),
    ROW(qsession_create),
    ROW(qsession_run),
    ROW(qsession_bind),
    ROW(qsession_reset),
    ROW(qlayer_create),
    ROW(qlayer_run),
    ROW(qlayer_weight),
    ROW(qlayer_bias),
    ROW(qtrainer_create),
    ROW(qtrainer_step),
    ROW(qtrainer_backward),
    ROW(qtrainer_update),
    ROW(qtrainer_evaluate),
    ROW(qtrainer_set),
    ROW(qtrainer_set_group),
    ROW(qtrainer_parameter_count),
    ROW(qtrainer_parameter_name),
    ROW(qtrainer_parameter),
    ROW(qtrainer_gradient),
    ROW(qtrainer_buffer_count),
    ROW(qtrainer_buffer_name),
    ROW(qtrainer_buffer),
    ROW(qtrainer_model),
    ROW(qtrainer_save),
    ROW(qtrainer_load),
    ROW(qtrainer_save_bytes),
    ROW(qtrainer_load_bytes),
#undef ROW
};

bool call(frame *f, const char *function, qstatus *status) {
  size_t i;
  for (i = 0; i < sizeof kCalls / sizeof *kCalls; ++i) {
    if (strcmp(kCalls[i].name, function) != 0) continue;
    *status = kCalls[i].run(f);
    return true;
  }
  return false;
}
