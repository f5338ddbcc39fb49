/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of a case works with: the library's functions as dlsym() finds them, the handles that earlier steps made,
 * and the arguments of this one. */
#ifndef QTN_TESTS_CONFORMANCE_FRAME_H
#define QTN_TESTS_CONFORMANCE_FRAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qtensor/qtensor.h"

/* All that the library exports: functions.inc has an X(name) for each line of capi/symbols.txt. */
typedef struct api {
#define X(name) __typeof__(&name) name;
#include "functions.inc"
#undef X
} api;

extern api qtn;

typedef enum handle_kind { NOTHING, TENSOR, QUANTIZER, OBSERVER, CONFIG, MODEL, SESSION, TRAINER, LAYER, BLOB } handle_kind;

typedef struct handle {
  char name[32];
  handle_kind kind;
  void *pointer;
} handle;

enum { MAX_HANDLES = 64, MAX_OUTPUTS = 8, MAX_SCRATCH = 64 };

typedef struct frame {
  const char *root;   /**< of the repository: paths of cases begin there */
  const char *folder; /**< for files that cases write: "@name" */
  handle handles[MAX_HANDLES];
  size_t handle_count;
  json_t *with;               /**< arguments of the step */
  void *outputs[MAX_OUTPUTS]; /**< what the call put out */
  size_t output_count;
  handle_kind output_kind;
  json_t *result;             /**< what a function without handles gives: a value */
  void *scratch[MAX_SCRATCH]; /**< freed after the step */
  size_t scratch_count;
  qattrs *attrs;     /**< of the step; freed after it */
  char problem[512]; /**< why the step cannot be run at all; "" where it can */
} frame;

/** Notes why a step is malformed. */
void malformed(frame *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Arguments by name. An absent one and null are NULL or 0. */
void *handle_of(frame *f, const char *key, handle_kind kind);
int64_t int_of(frame *f, const char *key);
double real_of(json_t *value);
const char *string_of(frame *f, const char *key);
const char *path_of(frame *f, const char *key);
const char *path_from(frame *f, const char *text);
int64_t *ints_of(frame *f, const char *key, size_t *count);
double *reals_of(frame *f, const char *key, size_t *count);
const qtensor **tensors_of(frame *f, const char *key, size_t *count);
qdtype dtype_of(frame *f, const char *key);
qscheme scheme_of(frame *f, const char *key);
qattrs *attrs_of(frame *f, const char *key); /**< at most one in a step */

/** "data" as bytes of a dtype; *nbytes is their size, or the argument "nbytes". */
void *data_of(frame *f, qdtype dtype, size_t *nbytes);

/** Where a call puts its handle: NULL if the argument "out" is null. It begins as a value that no call leaves there. */
void **out_of(frame *f, handle_kind kind);

void *scratch(frame *f, size_t size);

/** Bits of an element; 0 for a number that is no dtype. */
unsigned bits_of(qdtype dtype);

/** Element i of a contiguous tensor as JSON: floats as reals, narrow floats as bit patterns, all else as integers. */
json_t *element_of(qdtype dtype, const void *data, size_t i);

void free_handle(handle *h);

/** Runs the function of that name with the arguments in `f`; false where cases cannot call it. */
bool call(frame *f, const char *function, qstatus *status);

#endif
