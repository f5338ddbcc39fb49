/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void malformed(frame *f, const char *format, ...) {
  va_list arguments;
  if (*f->problem) return;
  va_start(arguments, format);
  vsnprintf(f->problem, sizeof f->problem, format, arguments);
  va_end(arguments);
}

void *scratch(frame *f, size_t size) {
  void *memory = calloc(1, size + 64);
  if (f->scratch_count == MAX_SCRATCH || !memory) {
    fprintf(stderr, "conformance: a step needs too much memory\n");
    exit(2);
  }
  return f->scratch[f->scratch_count++] = memory;
}

static json_t *argument(frame *f, const char *key) {
  json_t *value = json_object_get(f->with, key);
  return json_is_null(value) ? NULL : value;
}

static void *handle_named(frame *f, const char *text, handle_kind kind) {
  size_t i;
  if (text[0] == '$')
    for (i = f->handle_count; i-- > 0;)
      if (strcmp(f->handles[i].name, text + 1) == 0 && f->handles[i].kind == kind) return f->handles[i].pointer;
  malformed(f, "there is no %s of this kind", text);
  return NULL;
}

void *handle_of(frame *f, const char *key, handle_kind kind) {
  json_t *value = argument(f, key);
  if (!value) return NULL;
  if (json_is_string(value)) return handle_named(f, json_string_value(value), kind);
  malformed(f, "%s is no handle", key);
  return NULL;
}

int64_t int_of(frame *f, const char *key) {
  json_t *value = argument(f, key);
  if (value && !json_is_integer(value)) malformed(f, "%s is no integer", key);
  return value ? json_integer_value(value) : 0;
}

double real_of(json_t *value) {
  const char *text = json_string_value(value);
  if (!text) return json_number_value(value);
  if (strcmp(text, "inf") == 0) return INFINITY;
  if (strcmp(text, "-inf") == 0) return -INFINITY;
  return NAN;
}

const char *string_of(frame *f, const char *key) { return json_string_value(argument(f, key)); }

const char *path_of(frame *f, const char *key) { return path_from(f, string_of(f, key)); }

const char *path_from(frame *f, const char *text) {
  size_t size;
  char *path;
  if (!text) return NULL;
  size = strlen(text) + strlen(f->root) + strlen(f->folder) + 2;
  path = scratch(f, size);
  snprintf(path, size, "%s/%s", *text == '@' ? f->folder : f->root, *text == '@' ? text + 1 : text);
  return path;
}

int64_t *ints_of(frame *f, const char *key, size_t *count) {
  json_t *list = argument(f, key);
  int64_t *values;
  size_t i;
  *count = json_array_size(list);
  if (!list) return NULL;
  if (!json_is_array(list)) malformed(f, "%s is no list", key);
  values = scratch(f, *count * sizeof *values);
  for (i = 0; i < *count; ++i) values[i] = json_integer_value(json_array_get(list, i));
  return values;
}

double *reals_of(frame *f, const char *key, size_t *count) {
  json_t *list = argument(f, key);
  double *values;
  size_t i;
  *count = json_array_size(list);
  if (!list) return NULL;
  if (!json_is_array(list)) malformed(f, "%s is no list", key);
  values = scratch(f, *count * sizeof *values);
  for (i = 0; i < *count; ++i) values[i] = real_of(json_array_get(list, i));
  return values;
}

const qtensor **tensors_of(frame *f, const char *key, size_t *count) {
  json_t *list = argument(f, key);
  const qtensor **tensors;
  size_t i;
  *count = json_array_size(list);
  if (!list) return NULL;
  tensors = scratch(f, *count * sizeof *tensors);
  for (i = 0; i < *count; ++i) {
    json_t *item = json_array_get(list, i);
    if (!json_is_null(item)) tensors[i] = handle_named(f, json_string_value(item), TENSOR);
  }
  return tensors;
}

qdtype dtype_of(frame *f, const char *key) {
  json_t *value = argument(f, key);
  int code;
  if (json_is_integer(value)) return (qdtype)json_integer_value(value);
  for (code = 1; value && code < 64; ++code)
    if (strcmp(qtn.qdtype_name((qdtype)code), json_string_value(value)) == 0) return (qdtype)code;
  malformed(f, "%s is no dtype", key);
  return QTN_DTYPE_FORCE32;
}

qscheme scheme_of(frame *f, const char *key) {
  static const char *const names[] = {"per_tensor_affine",
                                      "per_tensor_symmetric",
                                      "per_channel_affine",
                                      "per_channel_symmetric",
                                      "per_block_affine",
                                      "per_block_symmetric",
                                      "per_channel_affine_float_qparams"};
  json_t *value = argument(f, key);
  size_t i;
  if (json_is_integer(value)) return (qscheme)json_integer_value(value);
  for (i = 0; value && i < sizeof names / sizeof *names; ++i)
    if (strcmp(names[i], json_string_value(value)) == 0) return (qscheme)i;
  malformed(f, "%s is no scheme", key);
  return QTN_SCHEME_FORCE32;
}

static void set_list(frame *f, qattrs *attrs, const char *key, json_t *list) {
  const size_t count = json_array_size(list);
  int64_t *ints = scratch(f, count * sizeof *ints);
  double *reals = scratch(f, count * sizeof *reals);
  bool integral = true;
  size_t i;
  for (i = 0; i < count; ++i) {
    integral = integral && json_is_integer(json_array_get(list, i));
    ints[i] = json_integer_value(json_array_get(list, i));
    reals[i] = real_of(json_array_get(list, i));
  }
  if (integral)
    qtn.qattrs_set_ints(attrs, key, ints, count);
  else
    qtn.qattrs_set_floats(attrs, key, reals, count);
}

qattrs *attrs_of(frame *f, const char *key) {
  json_t *object = argument(f, key), *value;
  const char *name;
  qattrs *attrs;
  if (!object) return NULL;
  qtn.qattrs_create(&f->attrs);
  attrs = f->attrs;
  json_object_foreach(object, name, value) {
    if (json_is_integer(value))
      qtn.qattrs_set_int(attrs, name, json_integer_value(value));
    else if (json_is_real(value))
      qtn.qattrs_set_float(attrs, name, json_real_value(value));
    else if (json_is_string(value))
      qtn.qattrs_set_string(attrs, name, json_string_value(value));
    else
      set_list(f, attrs, name, value);
  }
  return attrs;
}

unsigned bits_of(qdtype dtype) {
  switch (dtype) {
    case QTN_UINT2:
    case QTN_INT2:
      return 2;
    case QTN_UINT4:
    case QTN_INT4:
    case QTN_FLOAT4E2M1:
      return 4;
    case QTN_UINT8:
    case QTN_INT8:
    case QTN_BOOL:
    case QTN_FLOAT8E4M3FN:
    case QTN_FLOAT8E5M2:
    case QTN_FLOAT8E4M3FNUZ:
    case QTN_FLOAT8E5M2FNUZ:
    case QTN_FLOAT8E8M0:
      return 8;
    case QTN_UINT16:
    case QTN_INT16:
    case QTN_FLOAT16:
    case QTN_BFLOAT16:
      return 16;
    case QTN_FLOAT32:
    case QTN_INT32:
    case QTN_UINT32:
      return 32;
    case QTN_FLOAT64:
    case QTN_INT64:
    case QTN_UINT64:
      return 64;
    default:
      return 0;
  }
}

static void put_element(qdtype dtype, void *data, size_t i, json_t *value) {
  const unsigned bits = bits_of(dtype);
  const int64_t integer = json_integer_value(value);
  uint8_t *bytes = data;
  if (dtype == QTN_FLOAT32) {
    ((float *)data)[i] = (float)real_of(value);
  } else if (dtype == QTN_FLOAT64) {
    ((double *)data)[i] = real_of(value);
  } else if (bits < 8) {
    const unsigned per_byte = 8 / bits, shift = (unsigned)(i % per_byte) * bits, mask = (1u << bits) - 1;
    bytes[i / per_byte] = (uint8_t)(bytes[i / per_byte] | ((unsigned)integer & mask) << shift);
  } else {
    memcpy(bytes + i * (bits / 8), &integer, bits / 8); /* the low bytes: little-endian */
  }
}

json_t *element_of(qdtype dtype, const void *data, size_t i) {
  const unsigned bits = bits_of(dtype);
  const uint8_t *bytes = data;
  const bool is_signed = dtype == QTN_INT2 || dtype == QTN_INT4 || dtype == QTN_INT8 || dtype == QTN_INT16 ||
                         dtype == QTN_INT32 || dtype == QTN_INT64;
  uint64_t value = 0;
  if (dtype == QTN_FLOAT32 || dtype == QTN_FLOAT64) {
    const double real = dtype == QTN_FLOAT32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
    if (isnan(real)) return json_string("nan");
    if (isinf(real)) return json_string(real < 0 ? "-inf" : "inf");
    return json_real(real);
  }
  if (bits < 8)
    value = (unsigned)bytes[i / (8 / bits)] >> (i % (8 / bits) * bits) & ((1u << bits) - 1);
  else
    memcpy(&value, bytes + i * (bits / 8), bits / 8);
  if (is_signed && bits < 64 && value >> (bits - 1)) value |= ~(uint64_t)0 << bits;
  return json_integer((json_int_t)(int64_t)value);
}

void *data_of(frame *f, qdtype dtype, size_t *nbytes) {
  json_t *list = argument(f, "data");
  const size_t count = json_array_size(list);
  void *data = NULL;
  size_t i;
  *nbytes = (count * bits_of(dtype) + 7) / 8;
  if (list) {
    data = scratch(f, *nbytes + 8);
    for (i = 0; i < count && bits_of(dtype); ++i) put_element(dtype, data, i, json_array_get(list, i));
  }
  if (argument(f, "nbytes")) *nbytes = (size_t)int_of(f, "nbytes");
  return data;
}

void **out_of(frame *f, handle_kind kind) {
  json_t *out = json_object_get(f->with, "out");
  f->output_kind = kind;
  if (out && json_is_null(out)) return NULL;
  f->output_count = 1;
  f->outputs[0] = f;
  return f->outputs;
}
