/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest model with a bit of everything, as ONNX bytes: x [N, 1, 6, 6] -> Conv 3x3 -> Relu -> GlobalAveragePool
 * -> Flatten -> Gemm -> y [N, 3]. */
#ifndef QTN_TESTS_CAPI_TINY_MODEL_H
#define QTN_TESTS_CAPI_TINY_MODEL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TINY_INPUTS = 36, TINY_OUTPUTS = 3 };

typedef struct tiny_model {
  unsigned char data[2048];
  size_t size;
} tiny_model;

void tiny_model_make(tiny_model *m);

/** The same with more to train: Conv -> BatchNormalization -> `activation` -> `last` -> GlobalAveragePool ... `last` is
 * Dropout or Identity. */
void tiny_model_make_deep(tiny_model *m, const char *activation, const char *last);

/** Sample i: TINY_INPUTS values between -1 and 1. */
void tiny_sample(float *values, int i);

#ifdef __cplusplus
}
#endif

#endif
