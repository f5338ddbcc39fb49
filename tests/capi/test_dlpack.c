/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors lent to and taken from other libraries, with DLPack's structures written down here a second time, as another
 * library would. tests/capi/peers.py has NumPy and PyTorch as the other side. */
#include "check.h"

typedef struct DLTensor {
  void *data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

static int deletions;

static void count_deletion(DLManagedTensor *self) {
  assert_string_equal(self->manager_ctx, "context");
  ++deletions;
}
static void count_versioned_deletion(DLManagedTensorVersioned *self) {
  assert_string_equal(self->manager_ctx, "context");
  ++deletions;
}

/* A 2x3 float32 tensor in somebody else's memory. */
static float memory[8];
static int64_t shape[9], strides[9];

static DLTensor somebodys(void) {
  DLTensor t = {memory, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0};
  size_t i;
  for (i = 0; i < COUNT(memory); ++i) memory[i] = (float)i;
  for (i = 0; i < COUNT(shape); ++i) shape[i] = strides[i] = 1;
  shape[0] = 2;
  shape[1] = 3;
  return t;
}

static DLManagedTensor managed_of(DLTensor t) {
  DLManagedTensor managed = {t, "context", count_deletion};
  deletions = 0;
  return managed;
}

static void import_shares_and_deletes_once(void **state) {
  DLManagedTensor managed = managed_of(somebodys());
  qtensor *t = NULL, *row = NULL;
  void *data = NULL;
  (void)state;
  OK(qtensor_from_dlpack(&t, &managed));
  assert_ptr_equal(qtensor_data(t), memory);
  assert_int_equal(qtensor_dtype(t), QTN_FLOAT32);
  check_shape(t, DIMS(2, 3));
  assert_int_equal(qtensor_strides(t)[0], 3);
  OK(qtensor_data_mut(&data, t));
  *(float *)data = 9;
  assert_float_equal(memory[0], 9, 0);
  OK(qtensor_select(&row, t, 0, 1));
  qtensor_free(t);
  assert_int_equal(deletions, 0);
  assert_float_equal(float_at(row, 2), 5, 0);
  qtensor_free(row);
  assert_int_equal(deletions, 1);
}

static void import_layouts(void **state) {
  DLTensor source = somebodys();
  DLManagedTensor managed;
  qtensor *t = NULL, *flat = NULL;
  const float turned[] = {1, 3, 5, 2, 4, 6}, same[] = {2, 2, 2};
  (void)state;
  source.strides = strides; /* columns first, from the second float */
  strides[0] = 1;
  strides[1] = 2;
  source.byte_offset = 4;
  managed = managed_of(source);
  OK(qtensor_from_dlpack(&t, &managed));
  OK(qtensor_contiguous(&flat, t));
  check_floats(flat, turned, 6, 0);
  qtensor_free(flat);
  qtensor_free(t);
  source.ndim = 0; /* a scalar; shape and strides are not looked at */
  source.shape = source.strides = NULL;
  managed = managed_of(source);
  OK(qtensor_from_dlpack(&t, &managed));
  assert_int_equal(qtensor_rank(t), 0);
  assert_float_equal(float_at(t, 0), 1, 0);
  qtensor_free(t);
  source = somebodys(); /* broadcast */
  source.strides = strides;
  source.byte_offset = 8;
  source.ndim = 1;
  shape[0] = 3;
  strides[0] = 0;
  managed = managed_of(source);
  OK(qtensor_from_dlpack(&t, &managed));
  OK(qtensor_contiguous(&flat, t));
  check_floats(flat, same, 3, 0);
  qtensor_free(flat);
  qtensor_free(t);
  shape[0] = 0; /* nothing, nowhere; and nobody to call */
  source.data = NULL;
  managed = managed_of(source);
  managed.deleter = NULL;
  OK(qtensor_from_dlpack(&t, &managed));
  assert_int_equal(qtensor_nbytes(t), 0);
  qtensor_free(t);
  assert_int_equal(deletions, 0);
}

static const struct {
  qdtype dtype;
  uint8_t code, bits;
} kTypes[] = {
    {QTN_FLOAT64, 2, 64},
    {QTN_FLOAT32, 2, 32},
    {QTN_FLOAT16, 2, 16},
    {QTN_BFLOAT16, 4, 16},
    {QTN_INT64, 0, 64},
    {QTN_INT32, 0, 32},
    {QTN_INT16, 0, 16},
    {QTN_UINT16, 1, 16},
    {QTN_INT8, 0, 8},
    {QTN_UINT8, 1, 8},
    {QTN_BOOL, 6, 8},
    {QTN_FLOAT8E4M3FN, 10, 8},
    {QTN_FLOAT8E5M2, 12, 8},
    {QTN_FLOAT8E4M3FNUZ, 11, 8},
    {QTN_FLOAT8E5M2FNUZ, 13, 8},
    {QTN_FLOAT8E8M0, 14, 8},
    {QTN_UINT64, 1, 64},
    {QTN_UINT32, 1, 32},
};

static void every_type_in_and_out(void **state) {
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(kTypes); ++i) {
    DLTensor source = somebodys();
    DLManagedTensor managed, *out = NULL;
    DLManagedTensorVersioned *versioned = NULL;
    qtensor *t = NULL;
    shape[1] = 1;
    source.dtype.code = kTypes[i].code;
    source.dtype.bits = kTypes[i].bits;
    managed = managed_of(source);
    OK(qtensor_from_dlpack(&t, &managed));
    assert_int_equal(qtensor_dtype(t), kTypes[i].dtype);
    OK(qtensor_to_dlpack(&out, t));
    OK(qtensor_to_dlpack_versioned(&versioned, t));
    qtensor_free(t);
    assert_int_equal(out->dl_tensor.dtype.code, kTypes[i].code);
    assert_int_equal(out->dl_tensor.dtype.bits, kTypes[i].bits);
    assert_int_equal(out->dl_tensor.dtype.lanes, 1);
    assert_int_equal(versioned->dl_tensor.dtype.code, kTypes[i].code);
    assert_int_equal(versioned->version.major, 1);
    assert_int_equal(versioned->flags, 0);
    out->deleter(out);
    assert_int_equal(deletions, 0);
    versioned->deleter(versioned);
    assert_int_equal(deletions, 1);
  }
}

#define REFUSED(status, text, ...)                                   \
  do {                                                               \
    DLTensor source = somebodys();                                   \
    DLManagedTensor managed;                                         \
    __VA_ARGS__;                                                     \
    managed = managed_of(source);                                    \
    FAILS(status, text, qtensor_from_dlpack(&t, &managed));          \
    assert_null(t);                                                  \
    assert_int_equal(deletions, 0);                                  \
    assert_memory_equal(&managed.dl_tensor, &source, sizeof source); \
  } while (0)

static void import_refuses(void **state) {
  qtensor *t = NULL;
  DLManagedTensor right = managed_of(somebodys());
  (void)state;
  REFUSED(QTN_EUNSUPPORTED, "device type 2 (CUDA) is not supported, only CPU (1)", source.device.type = 2);
  REFUSED(QTN_EUNSUPPORTED, "device type 3 (CUDA host)", source.device.type = 3);
  REFUSED(QTN_EUNSUPPORTED, "device type -7 ", source.device.type = -7);
  REFUSED(QTN_EUNSUPPORTED, "device type 99 ", source.device.type = 99);
  REFUSED(QTN_EUNSUPPORTED, "2 lanes", source.dtype.lanes = 2);
  REFUSED(QTN_EUNSUPPORTED, "0 lanes", source.dtype.lanes = 0);
  REFUSED(QTN_EUNSUPPORTED, "code 5 of 64 bits", source.dtype.code = 5, source.dtype.bits = 64); /* complex */
  REFUSED(QTN_EUNSUPPORTED, "code 1 of 24 bits", source.dtype.code = 1, source.dtype.bits = 24);
  REFUSED(QTN_EUNSUPPORTED, "code 2 of 128 bits", source.dtype.bits = 128);
  REFUSED(QTN_EUNSUPPORTED, "int4 has 4 bits", source.dtype.code = 0, source.dtype.bits = 4);
  REFUSED(QTN_EUNSUPPORTED, "uint2 has 2 bits", source.dtype.code = 1, source.dtype.bits = 2);
  REFUSED(QTN_EUNSUPPORTED, "stride -1 of dimension 1", source.strides = strides, strides[1] = -1);
  REFUSED(QTN_ESHAPE, "9", source.ndim = 9);
  REFUSED(QTN_ESHAPE, "negative", shape[1] = -3);
  REFUSED(QTN_ESHAPE, "", shape[0] = shape[1] = INT64_MAX);
  REFUSED(QTN_EINVAL, "ndim is -1", source.ndim = -1);
  REFUSED(QTN_EINVAL, "shape is NULL", source.shape = NULL);
  REFUSED(QTN_EINVAL, "data is NULL", source.data = NULL);
  REFUSED(QTN_EINVAL, "byte offset 2 is not aligned", source.byte_offset = 2);
  REFUSED(QTN_EINVAL, "byte offset 18446744073709551612 leads out of memory", source.byte_offset = UINT64_MAX - 3);
  REFUSED(QTN_EINVAL, "out of memory", source.strides = strides, strides[1] = INT64_MAX);
  REFUSED(QTN_EINVAL, "out of memory", source.strides = strides, strides[1] = INT64_MAX / 4);
  FAILS(QTN_EINVAL, "out is NULL", qtensor_from_dlpack(NULL, &right));
  FAILS(QTN_EINVAL, "managed is NULL", qtensor_from_dlpack(&t, NULL));
  assert_int_equal(deletions, 0);
}

static void versioned(void **state) {
  DLManagedTensorVersioned managed = {{1, 7}, "context", count_versioned_deletion, 2, somebodys()}, *out = NULL;
  qtensor *t = NULL;
  (void)state;
  deletions = 0;
  OK(qtensor_from_dlpack_versioned(&t, &managed));
  assert_ptr_equal(qtensor_data(t), memory);
  OK(qtensor_to_dlpack_versioned(&out, t));
  qtensor_free(t);
  assert_int_equal(deletions, 0);
  assert_ptr_equal(out->dl_tensor.data, memory);
  out->deleter(out);
  assert_int_equal(deletions, 1);
  managed.flags = 1;
  FAILS(QTN_EUNSUPPORTED, "read-only", qtensor_from_dlpack_versioned(&t, &managed));
  managed.flags = 0;
  managed.version.major = 2;
  FAILS(QTN_EUNSUPPORTED, "version 2.7", qtensor_from_dlpack_versioned(&t, &managed));
  managed.version.major = 1;
  managed.dl_tensor.device.type = 2;
  FAILS(QTN_EUNSUPPORTED, "CUDA", qtensor_from_dlpack_versioned(&t, &managed));
  FAILS(QTN_EINVAL, "out is NULL", qtensor_from_dlpack_versioned(NULL, &managed));
  FAILS(QTN_EINVAL, "managed is NULL", qtensor_from_dlpack_versioned(&t, NULL));
  assert_int_equal(deletions, 1);
}

static void export_outlives_the_tensor(void **state) {
  const float values[] = {0, 1, 2, 3, 4, 5};
  const int32_t turn[] = {1, 0};
  qtensor *t = FLOATS(values, DIMS(2, 3)), *view = NULL,
          *scalar = tensor_of(QTN_FLOAT32, NULL, values, sizeof *values, NULL, 0);
  DLManagedTensor *out = NULL;
  const void *data = qtensor_data(t);
  (void)state;
  OK(qtensor_permute(&view, t, turn, 2));
  OK(qtensor_to_dlpack(&out, view));
  qtensor_free(view);
  qtensor_free(t);
  assert_ptr_equal(out->dl_tensor.data, data);
  assert_int_equal(out->dl_tensor.device.type, 1);
  assert_int_equal(out->dl_tensor.ndim, 2);
  assert_int_equal(out->dl_tensor.shape[0], 3);
  assert_int_equal(out->dl_tensor.shape[1], 2);
  assert_int_equal(out->dl_tensor.strides[0], 1);
  assert_int_equal(out->dl_tensor.strides[1], 3);
  assert_int_equal(out->dl_tensor.byte_offset, 0);
  assert_float_equal(((const float *)out->dl_tensor.data)[5], 5, 0);
  out->deleter(out);
  OK(qtensor_to_dlpack(&out, scalar));
  assert_int_equal(out->dl_tensor.ndim, 0);
  out->deleter(out);
  qtensor_free(scalar);
}

static void export_refuses(void **state) {
  const int8_t ints[] = {1, 2};
  qquantizer *q = affine(QTN_INT8, 0.5, 0);
  qtensor *t = tensor_of(QTN_INT8, q, ints, sizeof ints, DIMS(2));
  DLManagedTensor *out = NULL;
  DLManagedTensorVersioned *versioned_out = NULL;
  (void)state;
  FAILS(QTN_EDTYPE, "qtensor_int_repr", qtensor_to_dlpack(&out, t));
  assert_null(out);
  FAILS(QTN_EDTYPE, "qtensor_int_repr", qtensor_to_dlpack_versioned(&versioned_out, t));
  FAILS(QTN_EINVAL, "out is NULL", qtensor_to_dlpack(NULL, t));
  FAILS(QTN_EINVAL, "t is NULL", qtensor_to_dlpack(&out, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qtensor_to_dlpack_versioned(NULL, t));
  FAILS(QTN_EINVAL, "t is NULL", qtensor_to_dlpack_versioned(&versioned_out, NULL));
  qtensor_free(t);
  qquantizer_free(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(import_shares_and_deletes_once),
      cmocka_unit_test(import_layouts),
      cmocka_unit_test(every_type_in_and_out),
      cmocka_unit_test(import_refuses),
      cmocka_unit_test(versioned),
      cmocka_unit_test(export_outlives_the_tensor),
      cmocka_unit_test(export_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
