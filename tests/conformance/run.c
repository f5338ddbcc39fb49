/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the cases of a file against a library that is opened by dlopen() alone.
 *
 *     run LIBRARY ROOT CASES.json... [--row ROW]      ROW: a requirement's id, or "other" for cases without one
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"

api qtn;

static bool open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "conformance: %s\n", dlerror());
    return false;
  }
#define X(function)                                                  \
  *(void **)&qtn.function = dlsym(library, #function);               \
  if (!qtn.function) {                                               \
    fprintf(stderr, "conformance: %s has no " #function "\n", path); \
    return false;                                                    \
  }
#include "functions.inc"
#undef X
  return true;
}

void free_handle(handle *h) {
  switch (h->kind) {
    case TENSOR:
      qtn.qtensor_free(h->pointer);
      break;
    case QUANTIZER:
      qtn.qquantizer_free(h->pointer);
      break;
    case OBSERVER:
      qtn.qobserver_free(h->pointer);
      break;
    case CONFIG:
      qtn.qconfig_free(h->pointer);
      break;
    case MODEL:
      qtn.qmodel_free(h->pointer);
      break;
    case SESSION:
      qtn.qsession_free(h->pointer);
      break;
    case TRAINER:
      qtn.qtrainer_free(h->pointer);
      break;
    case LAYER:
      qtn.qlayer_free(h->pointer);
      break;
    case BLOB:
      qtn.qblob_free(h->pointer);
      break;
    case NOTHING:
      break;
  }
}

static void keep(frame *f, const char *name, size_t output) {
  handle *h = &f->handles[f->handle_count++];
  snprintf(h->name, sizeof h->name, "%s", name);
  h->kind = f->output_kind;
  h->pointer = f->outputs[output];
}

/* --- comparing */

static bool same_number(json_t *got, json_t *want, double tolerance) {
  const double a = real_of(got), b = real_of(want);
  if (json_is_integer(got) && json_is_integer(want)) return json_integer_value(got) == json_integer_value(want);
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b || fabs(a - b) <= tolerance;
}

static bool same_value(json_t *got, json_t *want, double tolerance) {
  size_t i;
  const char *key;
  json_t *value;
  if (json_is_object(want)) { /* the members that are asked for */
    json_object_foreach(want, key, value) if (!same_value(json_object_get(got, key), value, tolerance)) return false;
    return true;
  }
  if (json_is_array(want)) {
    if (json_array_size(got) != json_array_size(want)) return false;
    for (i = 0; i < json_array_size(want); ++i)
      if (!same_value(json_array_get(got, i), json_array_get(want, i), tolerance)) return false;
    return true;
  }
  if (json_is_number(got) && (json_is_number(want) || json_is_string(want))) return same_number(got, want, tolerance);
  if (json_is_string(got) && json_is_number(want)) return false;
  return json_equal(got, want);
}

static void check_value(frame *f, const char *what, json_t *got, json_t *want, double tolerance) {
  char *a, *b;
  if (same_value(got, want, tolerance)) return;
  a = json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT);
  b = json_dumps(want, JSON_ENCODE_ANY | JSON_COMPACT);
  malformed(f, "%s is %.180s, not %.180s", what, a ? a : "absent", b);
  free(a);
  free(b);
}

/* float32 data are written as the shortest decimals that give them back through float32. */
static void check_data(frame *f, const qtensor *t, json_t *want, double tolerance) {
  const qdtype dtype = qtn.qtensor_dtype(t);
  qtensor *flat = NULL;
  json_t *got = json_array(), *rounded = json_array();
  size_t i, count;
  qtn.qtensor_contiguous(&flat, t);
  count = (size_t)qtn.qtensor_numel(flat);
  for (i = 0; i < count; ++i) json_array_append_new(got, element_of(dtype, qtn.qtensor_data(flat), i));
  for (i = 0; i < json_array_size(want); ++i) {
    json_t *item = json_array_get(want, i);
    const bool narrows = dtype == QTN_FLOAT32 && json_is_number(item);
    json_array_append_new(rounded, narrows ? json_real((double)(float)json_number_value(item)) : json_incref(item));
  }
  check_value(f, "data", got, rounded, tolerance);
  json_decref(got);
  json_decref(rounded);
  qtn.qtensor_free(flat);
}

static void check_quantizer(frame *f, const qtensor *t, json_t *want) {
  const qquantizer *q = qtn.qtensor_quantizer(t);
  json_t *got = json_null();
  size_t i;
  if (q) {
    json_t *scales = json_array(), *zeros = json_array();
    for (i = 0; i < qtn.qquantizer_count(q); ++i) {
      json_array_append_new(scales, json_real(qtn.qquantizer_scales(q)[i]));
      json_array_append_new(zeros, json_integer(qtn.qquantizer_zero_points(q)[i]));
    }
    got = json_pack("{s:i, s:i, s:o, s:o, s:s, s:I}", "scheme", (int)qtn.qquantizer_scheme(q), "axis",
                    (int)qtn.qquantizer_axis(q), "scales", scales, "zero_points", zeros, "numerics",
                    qtn.qquantizer_numerics(q), "block_size", (json_int_t)qtn.qquantizer_block_size(q));
  }
  check_value(f, "quantizer", got, want, 0);
  json_decref(got);
}

static void check_text(frame *f, const qtensor *t, json_t *want) {
  char text[8192];
  size_t length = 0;
  json_t *got;
  qtn.qtensor_describe(text, sizeof text, &length, t);
  got = json_string(text);
  check_value(f, "text", got, want, 0);
  json_decref(got);
}

static void check_shape(frame *f, const qtensor *t, json_t *want) {
  json_t *got = json_array();
  size_t i;
  for (i = 0; i < qtn.qtensor_rank(t); ++i) json_array_append_new(got, json_integer(qtn.qtensor_shape(t)[i]));
  check_value(f, "shape", got, want, 0);
  json_decref(got);
}

/* {"expect": "$blob", "json": what the members that it names must be} */
static void expect_json(frame *f, json_t *step) {
  const qblob *blob;
  const char *key;
  json_t *got, *want;
  f->with = step;
  blob = handle_of(f, "expect", BLOB);
  if (!blob) return;
  got = json_loadb(qtn.qblob_data(blob), qtn.qblob_size(blob), 0, NULL);
  json_object_foreach(json_object_get(step, "json"), key, want)
      check_value(f, key, json_object_get(got, key), want, json_number_value(json_object_get(step, "tolerance")));
  json_decref(got);
}

/* {"expect": "$y", then at least one of "dtype", "shape", "data", "quantizer", "text"} */
static void expect(frame *f, json_t *step) {
  const double tolerance = json_number_value(json_object_get(step, "tolerance"));
  const qtensor *t;
  const char *key;
  json_t *want;
  size_t checks = 0;
  f->with = step;
  t = handle_of(f, "expect", TENSOR);
  if (!t) return;
  json_object_foreach(step, key, want) {
    ++checks;
    if (strcmp(key, "dtype") == 0) {
      json_t *got = json_string(qtn.qdtype_name(qtn.qtensor_dtype(t)));
      check_value(f, "dtype", got, want, 0);
      json_decref(got);
    } else if (strcmp(key, "shape") == 0) {
      check_shape(f, t, want);
    } else if (strcmp(key, "data") == 0) {
      check_data(f, t, want, tolerance);
    } else if (strcmp(key, "quantizer") == 0) {
      check_quantizer(f, t, want);
    } else if (strcmp(key, "text") == 0) {
      check_text(f, t, want);
    } else {
      --checks;
      if (strcmp(key, "expect") != 0 && strcmp(key, "tolerance") != 0) malformed(f, "\"%s\" is nothing to expect", key);
    }
  }
  if (checks == 0) malformed(f, "expects nothing");
}

/* --- calling */

static void check_failure(frame *f, json_t *step) {
  const char *message = json_string_value(json_object_get(step, "message"));
  size_t i;
  const char *place = message ? strstr(message, "{folder}") : NULL;
  char wanted[512];
  if (!message) malformed(f, "a failure is expected without its message, which is \"%s\"", qtn.qerror_message());
  if (place)
    snprintf(wanted, sizeof wanted, "%.*s%s%s", (int)(place - message), message, f->folder, place + strlen("{folder}"));
  else
    snprintf(wanted, sizeof wanted, "%s", message ? message : qtn.qerror_message());
  if (strcmp(wanted, qtn.qerror_message()) != 0)
    malformed(f, "the message is \"%s\", not \"%s\"", qtn.qerror_message(), wanted);
  for (i = 0; i < f->output_count; ++i)
    if (f->outputs[i]) malformed(f, "output %zu is not NULL after the failure", i);
}

static void keep_outputs(frame *f, json_t *step) {
  json_t *out = json_object_get(step, "out");
  size_t i;
  if (f->output_count == 1 && json_is_string(out)) {
    keep(f, json_string_value(out), 0);
    return;
  }
  for (i = 0; i < f->output_count; ++i) {
    json_t *name = json_array_get(out, i);
    keep(f, json_is_string(name) ? json_string_value(name) : "", i);
  }
}

static void run_call(frame *f, json_t *step) {
  const char *function = json_string_value(json_object_get(step, "call"));
  const char *wanted = json_string_value(json_object_get(step, "status"));
  json_t *equals = json_object_get(step, "equals"), *none = json_object();
  qstatus status = QTN_OK;
  json_t *with = json_object_get(step, "with");
  f->with = with ? with : none;
  f->output_count = 0;
  f->output_kind = NOTHING;
  f->result = NULL;
  f->attrs = NULL;
  if (!wanted) wanted = "QTN_OK";
  if (!function || !call(f, function, &status)) {
    malformed(f, "%s cannot be called", function ? function : "nothing");
  } else if (strcmp(qtn.qstatus_name(status), wanted) != 0) {
    malformed(f, "%s is %s \"%s\", not %s", function, qtn.qstatus_name(status),
              status == QTN_OK ? "" : qtn.qerror_message(), wanted);
    if (status == QTN_OK) keep_outputs(f, step);
  } else if (status != QTN_OK) {
    check_failure(f, step);
  } else {
    keep_outputs(f, step);
    if (equals) check_value(f, function, f->result, equals, json_number_value(json_object_get(step, "tolerance")));
    if (!equals && f->result) malformed(f, "%s gives a value, but none is expected", function);
  }
  json_decref(f->result);
  json_decref(none);
  qtn.qattrs_free(f->attrs);
}

/** Whether the step checks something: a status other than QTN_OK, a value, a tensor. */
static bool checks(json_t *step) {
  return json_object_get(step, "expect") || json_object_get(step, "equals") || json_object_get(step, "status");
}

static bool run_case(json_t *c, const char *root, const char *folder) {
  frame *f = calloc(1, sizeof *f);
  json_t *steps = json_object_get(c, "steps"), *step;
  size_t i, number = 0, checked = 0;
  bool fine;
  f->root = root;
  f->folder = folder;
  json_array_foreach(steps, number, step) {
    checked += checks(step);
    if (json_object_get(step, "json"))
      expect_json(f, step);
    else if (json_object_get(step, "expect"))
      expect(f, step);
    else
      run_call(f, step);
    for (i = 0; i < f->scratch_count; ++i) free(f->scratch[i]);
    f->scratch_count = 0;
    if (*f->problem) break;
  }
  if (!*f->problem && checked == 0) malformed(f, "the case expects nothing");
  fine = !*f->problem;
  if (!fine)
    printf("FAILED  %s, step %zu: %s\n", json_string_value(json_object_get(c, "name")), number + 1, f->problem);
  for (i = f->handle_count; i-- > 0;) free_handle(&f->handles[i]);
  free(f);
  return fine;
}

static bool is_of_row(json_t *c, const char *row) {
  json_t *rows = json_object_get(c, "rows"), *item;
  size_t i;
  if (!row) return true;
  if (strcmp(row, "other") == 0) return json_array_size(rows) == 0;
  json_array_foreach(rows, i, item) if (strcmp(json_string_value(item), row) == 0) return true;
  return false;
}

int main(int argc, char **argv) {
  char folder[] = "/tmp/qtensor-conformance-XXXXXX", command[64];
  const char *row = NULL;
  size_t total = 0, failed = 0;
  int i;
  if (argc < 4 || !open_library(argv[1]) || !mkdtemp(folder)) return 2;
  if (argc > 5 && strcmp(argv[argc - 2], "--row") == 0) {
    row = argv[argc - 1];
    argc -= 2;
  }
  for (i = 3; i < argc; ++i) {
    json_error_t error;
    json_t *cases = json_load_file(argv[i], JSON_REJECT_DUPLICATES, &error), *c;
    size_t n;
    if (!cases) {
      fprintf(stderr, "conformance: %s:%d: %s\n", argv[i], error.line, error.text);
      return 2;
    }
    json_array_foreach(cases, n, c) {
      if (!is_of_row(c, row)) continue;
      ++total;
      failed += !run_case(c, argv[2], folder);
    }
    json_decref(cases);
  }
  printf("%zu cases, %zu failed\n", total, failed);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0) return 2;
  return total > 0 && failed == 0 ? 0 : 1;
}
