/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_model.h"

#include <stdint.h>
#include <string.h>

typedef tiny_model bytes; /* of a protobuf message */

enum { FLOAT = 1, INT_ATTRIBUTE = 2 };

static void put_varint(bytes *b, uint64_t v) {
  for (; v >= 128; v >>= 7) b->data[b->size++] = (unsigned char)(v | 128);
  b->data[b->size++] = (unsigned char)v;
}

static void put_int(bytes *b, unsigned field, uint64_t v) {
  put_varint(b, field << 3);
  put_varint(b, v);
}

static void put_bytes(bytes *b, unsigned field, const void *data, size_t size) {
  put_varint(b, field << 3 | 2);
  put_varint(b, size);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

static void put_text(bytes *b, unsigned field, const char *text) { put_bytes(b, field, text, strlen(text)); }
static void put_message(bytes *b, unsigned field, const bytes *m) { put_bytes(b, field, m->data, m->size); }

/* TensorProto with values from -0.5 to 0.5. */
static void put_weights(bytes *graph, const char *name, const int *dims, size_t rank, int seed) {
  bytes tensor = {{0}, 0};
  float values[64];
  int count = 1, i;
  size_t d;
  for (d = 0; d < rank; ++d) {
    put_int(&tensor, 1, (uint64_t)dims[d]);
    count *= dims[d];
  }
  for (i = 0; i < count; ++i) values[i] = (float)((i + seed) * 7 % 11 - 5) / 10.0f;
  put_int(&tensor, 2, FLOAT);
  put_text(&tensor, 8, name);
  put_bytes(&tensor, 9, values, (size_t)count * sizeof *values);
  put_message(graph, 5, &tensor);
}

/* ValueInfoProto of float32; dimension 0 is "N". */
static void put_value(bytes *graph, unsigned field, const char *name, const int *dims, size_t rank) {
  bytes value = {{0}, 0}, type = {{0}, 0}, tensor = {{0}, 0}, shape = {{0}, 0};
  size_t d;
  for (d = 0; d < rank; ++d) {
    bytes dim = {{0}, 0};
    if (d == 0)
      put_text(&dim, 2, "N");
    else
      put_int(&dim, 1, (uint64_t)dims[d]);
    put_message(&shape, 1, &dim);
  }
  put_int(&tensor, 1, FLOAT);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&value, 1, name);
  put_message(&value, 2, &type);
  put_message(graph, field, &value);
}

static void put_node(bytes *graph, const char *op, const char *const *inputs, size_t count, const char *output,
                     const char *flag) {
  bytes node = {{0}, 0};
  size_t i;
  for (i = 0; i < count; ++i) put_text(&node, 1, inputs[i]);
  put_text(&node, 2, output);
  put_text(&node, 3, output);
  put_text(&node, 4, op);
  if (flag) {
    bytes attribute = {{0}, 0};
    put_text(&attribute, 1, flag);
    put_int(&attribute, 3, 1);
    put_int(&attribute, 20, INT_ATTRIBUTE);
    put_message(&node, 5, &attribute);
  }
  put_message(graph, 1, &node);
}

static void begin(bytes *graph) {
  static const char *const conv_in[] = {"x", "conv.weight", "conv.bias"};
  put_node(graph, "Conv", conv_in, 3, "conv", NULL);
}

/* The rest, from the value that is pooled on. */
static void finish(tiny_model *m, bytes *graph, const char *pooled) {
  static const char *const flatten_in[] = {"pool"}, *const gemm_in[] = {"flat", "fc.weight", "fc.bias"};
  static const int x[] = {0, 1, 6, 6}, y[] = {0, 3}, conv[] = {2, 1, 3, 3}, two[] = {2}, fc[] = {3, 2}, three[] = {3};
  bytes opset = {{0}, 0};
  put_node(graph, "GlobalAveragePool", &pooled, 1, "pool", NULL);
  put_node(graph, "Flatten", flatten_in, 1, "flat", NULL);
  put_node(graph, "Gemm", gemm_in, 3, "y", "transB");
  put_text(graph, 2, "tiny");
  put_weights(graph, "conv.weight", conv, 4, 1);
  put_weights(graph, "conv.bias", two, 1, 5);
  put_weights(graph, "fc.weight", fc, 2, 3);
  put_weights(graph, "fc.bias", three, 1, 8);
  put_value(graph, 11, "x", x, 4);
  put_value(graph, 12, "y", y, 2);
  put_text(&opset, 1, "");
  put_int(&opset, 2, 17);
  m->size = 0;
  put_int(m, 1, 8);
  put_message(m, 7, graph);
  put_message(m, 8, &opset);
}

void tiny_model_make(tiny_model *m) {
  static const char *const relu_in[] = {"conv"};
  bytes graph = {{0}, 0};
  begin(&graph);
  put_node(&graph, "Relu", relu_in, 1, "relu", NULL);
  finish(m, &graph, "relu");
}

void tiny_model_make_deep(tiny_model *m, const char *activation, const char *last) {
  static const char *const norm_in[] = {"conv", "norm.scale", "norm.offset", "norm.mean", "norm.variance"};
  static const char *const active_in[] = {"norm"}, *const last_in[] = {"active"};
  static const int two[] = {2};
  bytes graph = {{0}, 0};
  begin(&graph);
  put_node(&graph, "BatchNormalization", norm_in, 5, "norm", NULL);
  put_node(&graph, activation, active_in, 1, "active", NULL);
  put_node(&graph, last, last_in, 1, "kept", NULL);
  put_weights(&graph, "norm.scale", two, 1, 3);
  put_weights(&graph, "norm.offset", two, 1, 2);
  put_weights(&graph, "norm.mean", two, 1, 4);
  put_weights(&graph, "norm.variance", two, 1, 3);
  finish(m, &graph, "kept");
}

void tiny_sample(float *values, int i) {
  uint32_t state = 12345u + (uint32_t)i;
  int k;
  for (k = 0; k < TINY_INPUTS; ++k) {
    state = state * 1664525u + 1013904223u;
    values[k] = (float)(state >> 8) / 8388608.0f - 1.0f;
  }
}
