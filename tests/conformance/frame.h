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

/* Every function that cases may call, and those that the runner needs itself. */
#define FUNCTIONS(X)                                                                                                   \
  X(qlib_version)                                                                                                      \
  X(qlib_set_isa)                                                                                                      \
  X(qlib_set_threads)                                                                                                  \
  X(qstatus_name)                                                                                                      \
  X(qdtype_name)                                                                                                       \
  X(qerror_message)                                                                                                    \
  X(qattrs_create)                                                                                                     \
  X(qattrs_set_int)                                                                                                    \
  X(qattrs_set_float) X(qattrs_set_string) X(qattrs_set_ints) X(qattrs_set_floats) X(qattrs_free) X(qquantizer_create) \
      X(qquantizer_choose) X(qquantizer_dtype) X(qquantizer_scheme) X(qquantizer_axis) X(qquantizer_count)             \
          X(qquantizer_scales) X(qquantizer_zero_points) X(qquantizer_block_size) X(qquantizer_quant_min)              \
              X(qquantizer_quant_max) X(qquantizer_numerics) X(qquantizer_free) X(qtensor_create) X(qtensor_wrap) X(   \
                  qtensor_share) X(qtensor_free) X(qtensor_dtype) X(qtensor_rank) X(qtensor_shape) X(qtensor_strides)  \
                  X(qtensor_numel) X(qtensor_nbytes) X(qtensor_quantizer) X(qtensor_data) X(qtensor_data_mut) X(       \
                      qtensor_quantize) X(qtensor_dequantize) X(qtensor_select) X(qtensor_slice) X(qtensor_permute)    \
                      X(qtensor_reshape) X(qtensor_contiguous) X(qtensor_int_repr) X(qtensor_equal) X(qtensor_copy)    \
                          X(qtensor_item) X(qtensor_describe) X(qtensor_save) X(qtensor_load) X(qtensor_save_npy) X(   \
                              qtensor_load_npy) X(qtensor_save_all) X(qtensor_load_named) X(qtensor_load_rows)         \
                              X(qtensor_inspect) X(qtensor_to_dlpack) X(qtensor_to_dlpack_versioned) X(                \
                                  qtensor_from_dlpack_versioned) X(qmodel_load_bytes) X(qmodel_inspect)                \
                                  X(qsession_profile) X(qtensor_from_dlpack) X(qobserver_create) X(qobserver_observe)  \
                                      X(qobserver_merge) X(qobserver_quantizer) X(qobserver_save) X(qobserver_load)    \
                                          X(qobserver_free) X(qop_run) X(qop_linear) X(qop_conv2d) X(qop_relu)         \
                                              X(qop_add) X(qop_matmul) X(qop_cat) X(qop_max_pool2d) X(qop_avg_pool2d)  \
                                                  X(qconfig_create) X(qconfig_set) X(qconfig_save) X(qconfig_load)     \
                                                      X(qconfig_free) X(qmodel_load) X(qmodel_save) X(qmodel_fuse)     \
                                                          X(qmodel_prepare) X(qmodel_calibrate) X(qmodel_convert)      \
                                                              X(qmodel_save_calibration) X(qmodel_load_calibration)    \
                                                                  X(qmodel_merge_calibrations) X(qmodel_quantize)      \
                                                                      X(qmodel_input_count) X(qmodel_output_count)     \
                                                                          X(qmodel_input_name) X(qmodel_output_name)   \
                                                                              X(qmodel_free) X(qsession_create)        \
                                                                                  X(qsession_run) X(qsession_free)     \
                                                                                      X(qblob_data) X(qblob_size)      \
                                                                                          X(qblob_free)

typedef struct api {
#define MEMBER(name) __typeof__(&name) name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} api;

extern api qtn;

typedef enum handle_kind { NOTHING, TENSOR, QUANTIZER, OBSERVER, CONFIG, MODEL, SESSION, BLOB } handle_kind;

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

/** Runs the function of that name with the arguments in `f`; false where cases cannot call it. */
bool call(frame *f, const char *function, qstatus *status);

#endif
