/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in files. Each test makes its files in the current folder and removes them. */
#include "check.h"

static const char *const kFile = "test_files.safetensors";
static const char *const kNpy = "test_files.npy";
static const float kValues[] = {0, 1, 2, 3, 4, 5};

static int remove_files(void **state) {
  (void)state;
  remove(kFile);
  remove(kNpy);
  return 0;
}

static void write_bytes(const char *path, const char *bytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fputs(bytes, file);
  fclose(file);
}

static qtensor *channels(void) {
  const double scales[] = {0.1, 1.0 / 3, 1e-30};
  const int64_t zeros[] = {-128, 0, 127};
  const int8_t ints[] = {-128, 0, 127, 5, 6, 7};
  qquantizer *q = NULL;
  qtensor *t = NULL;
  OK(qquantizer_create(&q, QTN_INT8, QTN_PER_CHANNEL_AFFINE, 1, scales, zeros, 3, NULL));
  t = tensor_of(QTN_INT8, q, ints, sizeof ints, DIMS(2, 3));
  qquantizer_free(q);
  return t;
}

static void check_same(const qtensor *a, const qtensor *b) {
  const qquantizer *p = qtensor_quantizer(a), *q = qtensor_quantizer(b);
  assert_int_equal(qtensor_dtype(a), qtensor_dtype(b));
  check_shape(a, qtensor_shape(b), qtensor_rank(b));
  assert_memory_equal(qtensor_data(a), qtensor_data(b), qtensor_nbytes(b));
  assert_int_equal(p != NULL, q != NULL);
  if (!p) return;
  assert_int_equal(qquantizer_scheme(p), qquantizer_scheme(q));
  assert_int_equal(qquantizer_axis(p), qquantizer_axis(q));
  assert_int_equal(qquantizer_count(p), qquantizer_count(q));
  assert_memory_equal(qquantizer_scales(p), qquantizer_scales(q), qquantizer_count(q) * sizeof(double));
  assert_memory_equal(qquantizer_zero_points(p), qquantizer_zero_points(q), qquantizer_count(q) * sizeof(int64_t));
}

static void one_tensor(void **state) {
  qtensor *t = channels(), *back = NULL;
  (void)state;
  OK(qtensor_save(t, kFile));
  OK(qtensor_load(&back, kFile));
  check_same(back, t);
  qtensor_free(back);
  OK(qtensor_load_named(&back, kFile, "tensor"));
  check_same(back, t);
  qtensor_free(back);
  FAILS(QTN_EINVAL, "holds no tensor \"x\", but \"tensor\"", qtensor_load_named(&back, kFile, "x"));
  assert_null(back);
  FAILS(QTN_EIO, "none.safetensors", qtensor_load(&back, "none.safetensors"));
  FAILS(QTN_EIO, "no-folder/x", qtensor_save(t, "no-folder/x"));
  write_bytes(kFile, "hello, this is no file of tensors");
  FAILS(QTN_EFORMAT, kFile, qtensor_load(&back, kFile));
  FAILS(QTN_EFORMAT, kFile, qtensor_load_named(&back, kFile, "tensor"));
  FAILS(QTN_EINVAL, "t is NULL", qtensor_save(NULL, kFile));
  FAILS(QTN_EINVAL, "path is NULL", qtensor_save(t, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qtensor_load(NULL, kFile));
  FAILS(QTN_EINVAL, "path is NULL", qtensor_load(&back, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qtensor_load_named(NULL, kFile, "x"));
  FAILS(QTN_EINVAL, "path is NULL", qtensor_load_named(&back, NULL, "x"));
  FAILS(QTN_EINVAL, "name is NULL", qtensor_load_named(&back, kFile, NULL));
  qtensor_free(t);
}

static void several_tensors(void **state) {
  const char *const names[] = {"first", "second \xc3\xa9"}, *const twice[] = {"a", "a"},
                    *const own[] = {"__metadata__"};
  const char *const hole[] = {"a", NULL}, *const no_text[] = {"\xff"};
  const qtensor *tensors[2], *gap[2];
  qtensor *a = channels(), *b = FLOATS(kValues, DIMS(2, 3)), *back = NULL;
  qblob *text = NULL;
  (void)state;
  tensors[0] = gap[0] = a;
  tensors[1] = b;
  gap[1] = NULL;
  OK(qtensor_save_all(kFile, names, tensors, 2));
  OK(qtensor_load_named(&back, kFile, names[0]));
  check_same(back, a);
  qtensor_free(back);
  OK(qtensor_load_named(&back, kFile, names[1]));
  check_same(back, b);
  qtensor_free(back);
  FAILS(QTN_EINVAL, "\"second \xc3\xa9\", \"first\"", qtensor_load(&back, kFile));
  OK(qtensor_inspect(&text, kFile));
  assert_string_equal(qblob_data(text),
                      "{\"tensors\":[{\"name\":\"second \xc3\xa9\",\"dtype\":\"float32\",\"shape\":[2,3]},"
                      "{\"name\":\"first\",\"dtype\":\"int8\",\"shape\":[2,3],\"scheme\":\"per_channel_affine\"}]}");
  assert_int_equal(qblob_size(text), strlen(qblob_data(text)));
  qblob_free(text);
  FAILS(QTN_EINVAL, "\"a\" comes twice", qtensor_save_all(kFile, twice, tensors, 2));
  FAILS(QTN_EINVAL, "__metadata__", qtensor_save_all(kFile, own, tensors, 1));
  FAILS(QTN_EINVAL, "UTF-8", qtensor_save_all(kFile, no_text, tensors, 1));
  FAILS(QTN_EINVAL, "names[1] is NULL", qtensor_save_all(kFile, hole, tensors, 2));
  FAILS(QTN_EINVAL, "tensors[1] is NULL", qtensor_save_all(kFile, names, gap, 2));
  FAILS(QTN_EINVAL, "names is NULL", qtensor_save_all(kFile, NULL, tensors, 2));
  FAILS(QTN_EINVAL, "tensors is NULL", qtensor_save_all(kFile, names, NULL, 2));
  FAILS(QTN_EINVAL, "path is NULL", qtensor_save_all(NULL, names, tensors, 2));
  FAILS(QTN_EIO, "no-folder/x", qtensor_save_all("no-folder/x", names, tensors, 2));
  OK(qtensor_load_named(&back, kFile, names[1])); /* what failed left the file as it was */
  qtensor_free(back);
  OK(qtensor_save_all(kFile, NULL, NULL, 0));
  FAILS(QTN_EINVAL, "0 tensors", qtensor_load(&back, kFile));
  FAILS(QTN_EINVAL, "out is NULL", qtensor_inspect(NULL, kFile));
  FAILS(QTN_EINVAL, "path is NULL", qtensor_inspect(&text, NULL));
  FAILS(QTN_EIO, "none", qtensor_inspect(&text, "none"));
  qtensor_free(a);
  qtensor_free(b);
}

static void npy(void **state) {
  const int32_t turn[] = {1, 0};
  const float turned[] = {0, 3, 1, 4, 2, 5};
  qtensor *t = FLOATS(kValues, DIMS(2, 3)), *view = NULL, *back = NULL, *q = channels(), *half = NULL;
  qblob *text = NULL;
  (void)state;
  OK(qtensor_permute(&view, t, turn, 2));
  OK(qtensor_save_npy(view, kNpy));
  OK(qtensor_load_npy(&back, kNpy));
  check_shape(back, DIMS(3, 2));
  check_floats(back, turned, 6, 0);
  qtensor_free(back);
  OK(qtensor_inspect(&text, kNpy));
  assert_string_equal(qblob_data(text), "{\"tensors\":[{\"name\":\"\",\"dtype\":\"float32\",\"shape\":[3,2]}]}");
  qblob_free(text);
  FAILS(QTN_EDTYPE, "qtensor_int_repr", qtensor_save_npy(q, kNpy));
  OK(qtensor_create(&half, QTN_BFLOAT16, DIMS(1), NULL, NULL, 0));
  FAILS(QTN_EUNSUPPORTED, "bfloat16", qtensor_save_npy(half, kNpy));
  FAILS(QTN_EIO, "no-folder/x", qtensor_save_npy(t, "no-folder/x"));
  FAILS(QTN_EIO, "none", qtensor_load_npy(&back, "none"));
  OK(qtensor_save(t, kFile));
  FAILS(QTN_EFORMAT, "no .npy file", qtensor_load_npy(&back, kFile));
  FAILS(QTN_EFORMAT, "no safetensors file", qtensor_load(&back, kNpy));
  FAILS(QTN_EINVAL, "t is NULL", qtensor_save_npy(NULL, kNpy));
  FAILS(QTN_EINVAL, "path is NULL", qtensor_save_npy(t, NULL));
  FAILS(QTN_EINVAL, "out is NULL", qtensor_load_npy(NULL, kNpy));
  FAILS(QTN_EINVAL, "path is NULL", qtensor_load_npy(&back, NULL));
  qtensor_free(t);
  qtensor_free(view);
  qtensor_free(q);
  qtensor_free(half);
}

static void rows(void **state) {
  qtensor *t = FLOATS(kValues, DIMS(3, 2)), *q = channels(), *back = NULL,
          *scalar = tensor_of(QTN_FLOAT32, NULL, kValues, sizeof *kValues, NULL, 0);
  const float second[] = {2, 3};
  (void)state;
  OK(qtensor_save_npy(t, kNpy));
  OK(qtensor_load_rows(&back, kNpy, NULL, 1, 2));
  check_shape(back, DIMS(1, 2));
  check_floats(back, second, 2, 0);
  qtensor_free(back);
  OK(qtensor_load_rows(&back, kNpy, NULL, 3, 3));
  check_shape(back, DIMS(0, 2));
  qtensor_free(back);
  OK(qtensor_save(q, kFile));
  OK(qtensor_load_rows(&back, kFile, "tensor", 1, 2));
  assert_int_equal(((const int8_t *)qtensor_data(back))[0], 5);
  assert_int_equal(qquantizer_count(qtensor_quantizer(back)), 3);
  qtensor_free(back);
  FAILS(QTN_EINVAL, "rows 1 to 4 of a 3x2", qtensor_load_rows(&back, kNpy, NULL, 1, 4));
  FAILS(QTN_EINVAL, "rows -1", qtensor_load_rows(&back, kNpy, NULL, -1, 1));
  FAILS(QTN_EINVAL, "rows 2 to 1", qtensor_load_rows(&back, kNpy, NULL, 2, 1));
  FAILS(QTN_EINVAL, "\"x\"", qtensor_load_rows(&back, kNpy, "x", 0, 1));
  FAILS(QTN_EINVAL, "\"x\"", qtensor_load_rows(&back, kFile, "x", 0, 1));
  FAILS(QTN_EIO, "none", qtensor_load_rows(&back, "none", NULL, 0, 1));
  FAILS(QTN_EINVAL, "out is NULL", qtensor_load_rows(NULL, kFile, NULL, 0, 1));
  FAILS(QTN_EINVAL, "path is NULL", qtensor_load_rows(&back, NULL, NULL, 0, 1));
  OK(qtensor_save(scalar, kFile));
  FAILS(QTN_EINVAL, "scalar", qtensor_load_rows(&back, kFile, NULL, 0, 1));
  qtensor_free(t);
  qtensor_free(q);
  qtensor_free(scalar);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(one_tensor, remove_files),
      cmocka_unit_test_teardown(several_tensors, remove_files),
      cmocka_unit_test_teardown(npy, remove_files),
      cmocka_unit_test_teardown(rows, remove_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
