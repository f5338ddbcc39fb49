/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in saved observers and checkpoints that no library writes: each ends in an error and changes nothing, or in
 * an observer that works. */
#define _GNU_SOURCE
#include <math.h>
#include <unistd.h>

#include "check.h"
#include "tiny_model.h"

enum { ROOM = 1 << 20 };

typedef struct bytes {
  unsigned char data[ROOM];
  size_t size;
} bytes;

static bytes saved, changed;

static void restore(void) {
  memcpy(changed.data, saved.data, saved.size);
  changed.size = saved.size;
}

/* --- observers */

static const char *const kHistograms[] = {"max",    "histogram",         "percentile",     "entropy",
                                          "mse",    "nvidia_percentile", "nvidia_entropy", "nvidia_mse",
                                          "minmax", "moving_average"};

static qobserver *observer_of(const char *kind, int64_t bins) {
  qattrs *attrs = NULL;
  qobserver *o = NULL;
  OK(qattrs_create(&attrs));
  if (bins) OK(qattrs_set_int(attrs, "bins", bins));
  if (strncmp(kind, "nvidia", 6) == 0) {
    OK(qattrs_set_string(attrs, "scheme", "per_tensor_symmetric"));
    OK(qattrs_set_string(attrs, "dtype", "int8"));
    OK(qattrs_set_string(attrs, "numerics", "nvidia"));
  }
  OK(qobserver_create(&o, kind, attrs));
  qattrs_free(attrs);
  return o;
}

static void observe(qobserver *o, float a, float b, float c) {
  const float values[] = {a, b, c};
  qtensor *x = FLOATS(values, DIMS(3));
  OK(qobserver_observe(o, x));
  qtensor_free(x);
}

static void save(bytes *to, const qobserver *o) {
  qblob *blob = NULL;
  OK(qobserver_save(&blob, o));
  to->size = qblob_size(blob);
  assert_in_range(to->size, 1, ROOM);
  memcpy(to->data, qblob_data(blob), to->size);
  qblob_free(blob);
}

/* Whatever loads must count what comes next, and say what it has seen. */
static void use(const bytes *from) {
  static const float kNext[][3] = {{0.1f, -0.2f, 0.3f}, {1e-30f, 0, -1e-30f}, {3e4f, -3e4f, 1}, {1e30f, -1e30f, 5}};
  qobserver *o = NULL, *copy = NULL;
  qquantizer *q = NULL;
  qstatus status = qobserver_load(&o, from->data, from->size);
  if (status != QTN_OK) {
    assert_null(o);
    FAILS(QTN_EFORMAT, "", status);
    return;
  }
  for (size_t i = 0; i < COUNT(kNext); ++i) {
    qtensor *x = FLOATS(kNext[i], DIMS(3));
    status = qobserver_observe(o, x);
    if (status != QTN_OK) FAILS(QTN_EINVAL, "observer", status);
    qtensor_free(x);
  }
  status = qobserver_quantizer(&q, o);
  if (status == QTN_OK) assert_true(isfinite(*qquantizer_scales(q)) && *qquantizer_scales(q) > 0);
  OK(qobserver_load(&copy, from->data, from->size));
  status = qobserver_merge(o, copy);
  if (status != QTN_OK) FAILS(QTN_EINVAL, "observer", status);
  qquantizer_free(q);
  qobserver_free(copy);
  qobserver_free(o);
}

/* Each word of a saved observer in turn becomes something else. */
static void any_number_in_observers(void **state) {
  static const uint32_t kWords[] = {0,
                                    1,
                                    0xFFFFFFFF,
                                    0x7FFFFFFF,
                                    0x80000000,
                                    0x7FC00000 /* nan */,
                                    0x7F800000 /* inf */,
                                    0xFF800000,
                                    0x7F7FFFFF /* the largest float */,
                                    0x00000001 /* the smallest */,
                                    0x3F800000,
                                    0xBF800000,
                                    0x00010001,
                                    0x00000100};
  (void)state;
  for (size_t kind = 0; kind < COUNT(kHistograms); ++kind) {
    qobserver *o = observer_of(kHistograms[kind],
                               strstr(kHistograms[kind], "entropy") || strstr(kHistograms[kind], "nvidia") ? 256 : 8);
    observe(o, 0.5f, -1, 0.25f);
    observe(o, 2, 1, -3);
    save(&saved, o);
    qobserver_free(o);
    /* At most 64 places; what ends with the file is aligned to its end. */
    const size_t step = saved.size / 256 * 4 + 4;
    for (size_t at = saved.size % step; at + 4 <= saved.size; at += step)
      for (size_t w = 0; w < COUNT(kWords); ++w) {
        restore();
        memcpy(changed.data + at, &kWords[w], 4);
        use(&changed);
      }
  }
}

/* A histogram ends in: count of edges (u64), edges (f32), count of bins (u64), bins (u64). */
typedef struct histogram {
  size_t edges, bins; /* where their counts are */
} histogram;

static histogram histogram_of(const bytes *b, uint64_t bins) {
  const histogram h = {b->size - 8 * bins - 8 - 4 * (bins + 1) - 8, b->size - 8 * bins - 8};
  uint64_t counted = 0, edges = 0;
  memcpy(&counted, b->data + h.bins, 8);
  memcpy(&edges, b->data + h.edges, 8);
  assert_int_equal(counted, bins);
  assert_int_equal(edges, bins + 1);
  return h;
}

static void put_u64(bytes *b, size_t at, uint64_t value) { memcpy(b->data + at, &value, 8); }

static void refused(const char *text) {
  qobserver *o = NULL;
  FAILS(QTN_EFORMAT, text, qobserver_load(&o, changed.data, changed.size));
  assert_null(o);
}

static void bins_of_observers(void **state) {
  static const uint64_t kCounts[] = {0, 1, 3, 5, 1 << 20, UINT64_MAX, UINT64_MAX / 8, (uint64_t)1 << 61};
  const uint64_t bins = 4;
  qobserver *o = observer_of("percentile", (int64_t)bins);
  (void)state;
  observe(o, 0.5f, -1, 0.25f);
  save(&saved, o);
  qobserver_free(o);
  const histogram h = histogram_of(&saved, bins);
  for (size_t i = 0; i < COUNT(kCounts); ++i) {
    restore();
    put_u64(&changed, h.bins, kCounts[i]);
    /* With fewer bins, also without the bytes that are left over then. */
    if (kCounts[i] < bins) changed.size = h.bins + 8 + 8 * kCounts[i];
    refused(kCounts[i] < bins ? "the numbers of bins and edges do not fit" : "");
    restore();
    put_u64(&changed, h.edges, kCounts[i]);
    if (kCounts[i] != bins + 1) refused("");
  }
  /* More bins than settings can ask for, with as many edges. */
  const uint64_t many = 70000;
  changed.size = h.edges;
  memcpy(changed.data, saved.data, h.edges);
  put_u64(&changed, changed.size, many + 1);
  changed.size += 8;
  for (uint64_t i = 0; i <= many; ++i, changed.size += 4) {
    const float edge = (float)i;
    memcpy(changed.data + changed.size, &edge, 4);
  }
  put_u64(&changed, changed.size, many);
  changed.size += 8;
  for (uint64_t i = 0; i < many; ++i, changed.size += 8) put_u64(&changed, changed.size, 1);
  refused("the numbers of bins and edges do not fit");
}

static void edges_of_observers(void **state) {
  static const float kEdges[] = {NAN, INFINITY, -INFINITY, -1e30f, 1e30f};
  const uint64_t bins = 4;
  qobserver *o = observer_of("percentile", (int64_t)bins);
  (void)state;
  observe(o, 0.5f, -1, 0.25f);
  save(&saved, o);
  qobserver_free(o);
  const histogram h = histogram_of(&saved, bins);
  for (size_t i = 0; i < COUNT(kEdges); ++i) {
    restore();
    memcpy(changed.data + h.edges + 8 + 4 * 2, &kEdges[i], 4); /* the one in the middle */
    refused("the edges do not ascend");
  }
  restore();
  memcpy(changed.data + h.edges + 8, changed.data + h.edges + 12, 4); /* the first bin is empty */
  refused("the edges do not ascend");
  for (size_t i = 0; i < 3; ++i) {
    restore();
    memcpy(changed.data + h.edges - 8, &kEdges[i], 4); /* the smallest value */
    refused("the range is not finite and ordered");
  }
}

/* --- checkpoints */

static char path[32];

static int make_file(void **state) {
  (void)state;
  strcpy(path, "/tmp/qtensor-state-XXXXXX");
  const int fd = mkstemp(path);
  return fd < 0 || close(fd) != 0;
}

static int remove_file(void **state) {
  (void)state;
  return unlink(path);
}

static qtrainer *trainer_with_grids(void) {
  tiny_model tiny;
  float values[TINY_INPUTS];
  const int64_t label[] = {1};
  double loss = 0;
  qmodel *m = NULL, *prepared = NULL;
  qconfig *config = NULL;
  qtrainer *t = NULL;
  tiny_model_make(&tiny);
  tiny_sample(values, 0);
  OK(qmodel_load_bytes(&m, tiny.data, tiny.size));
  OK(qconfig_create(&config, "onnx"));
  OK(qmodel_prepare(&prepared, m, config, QTN_QAT));
  OK(qtrainer_create(&t, prepared, NULL));
  qtensor *x = FLOATS(values, DIMS(1, 1, 6, 6)), *y = tensor_of(QTN_INT64, NULL, label, sizeof label, DIMS(1));
  const qtensor *inputs[] = {x}, *targets[] = {y};
  OK(qtrainer_step(&loss, t, inputs, 1, targets, 1));
  qtensor_free(x);
  qtensor_free(y);
  qconfig_free(config);
  qmodel_free(prepared);
  qmodel_free(m);
  return t;
}

static void read_file(bytes *to) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  to->size = fread(to->data, 1, ROOM, file);
  fclose(file);
}

static void write_file(const bytes *from) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(from->data, 1, from->size, file), from->size);
  fclose(file);
}

/* Where the five numbers of a grid are: 1 where it is known, smallest, largest, scale, zero point. */
static size_t grid_of(const bytes *b) {
  static const char kKey[] = "\"grid/", kOffsets[] = "\"data_offsets\":[";
  uint64_t header = 0;
  memcpy(&header, b->data, 8);
  const char *text = (const char *)b->data + 8, *key = memmem(text, header, kKey, strlen(kKey));
  assert_non_null(key);
  const char *offset = memmem(key, header - (size_t)(key - text), kOffsets, strlen(kOffsets));
  assert_non_null(offset);
  return 8 + header + strtoul(offset + strlen(kOffsets), NULL, 10);
}

static void grids_of_checkpoints(void **state) {
  static const struct {
    size_t number;
    float value;
    const char *text;
  } kBad[] = {{0, NAN, "not finite"},      {1, NAN, "not finite"},      {1, -INFINITY, "not finite"},
              {2, NAN, "not finite"},      {2, INFINITY, "not finite"}, {3, NAN, "not finite"},
              {3, INFINITY, "not finite"}, {4, NAN, "not finite"},      {4, INFINITY, "not finite"},
              {3, 0, "is no grid"},        {3, -0.5f, "is no grid"},    {4, 1e9f, "is no grid"},
              {4, -1e9f, "is no grid"},    {4, 3e38f, "is no grid"},    {4, 0.5f, "is no grid"},
              {1, 1e30f, "is no grid"},    {2, -1e30f, "is no grid"}};
  qtrainer *t = trainer_with_grids();
  (void)state;
  OK(qtrainer_save(t, path));
  read_file(&saved);
  for (size_t i = 0; i < COUNT(kBad); ++i) {
    restore();
    memcpy(changed.data + grid_of(&saved) + 4 * kBad[i].number, &kBad[i].value, 4);
    write_file(&changed);
    FAILS(QTN_EFORMAT, kBad[i].text, qtrainer_load(t, path));
    assert_non_null(strstr(qerror_message(), "grid/"));
    OK(qtrainer_save(t, path)); /* it is as it was */
    read_file(&changed);
    assert_int_equal(changed.size, saved.size);
    assert_memory_equal(changed.data, saved.data, saved.size);
  }
  write_file(&saved);
  OK(qtrainer_load(t, path));
  qtrainer_free(t);
}

/* --- files and bytes */

static void check_file(qblob *blob) {
  read_file(&saved);
  assert_int_equal(qblob_size(blob), saved.size);
  assert_memory_equal(qblob_data(blob), saved.data, saved.size);
  qblob_free(blob);
}

static void bytes_are_those_of_files(void **state) {
  tiny_model tiny;
  qmodel *m = NULL;
  qblob *blob = NULL;
  qobserver *o = observer_of("histogram", 16);
  qtrainer *t = trainer_with_grids();
  (void)state;
  tiny_model_make(&tiny);
  OK(qmodel_load_bytes(&m, tiny.data, tiny.size));
  OK(qmodel_save(m, path, NULL));
  OK(qmodel_save_bytes(&blob, m, NULL));
  check_file(blob);
  observe(o, -1, 2, 3);
  OK(qobserver_save_file(o, path));
  OK(qobserver_save(&blob, o));
  check_file(blob);
  OK(qtrainer_save(t, path));
  OK(qtrainer_save_bytes(&blob, t));
  check_file(blob);
  qtrainer_free(t);
  qobserver_free(o);
  qmodel_free(m);
}

/* What is cut off ends where its memory ends, so that tools which look for it see a byte that is read beyond. */
static void parts_of_checkpoints(void **state) {
  uint64_t header = 0;
  qblob *whole = NULL, *again = NULL;
  qtrainer *t = trainer_with_grids();
  (void)state;
  OK(qtrainer_save_bytes(&whole, t));
  const size_t size = qblob_size(whole);
  memcpy(&header, qblob_data(whole), 8);
  for (size_t n = 0; n < size; n += n < 8 + header ? 1 : 41) {
    unsigned char *part = malloc(n ? n : 1);
    assert_non_null(part);
    memcpy(part, qblob_data(whole), n);
    FAILS(QTN_EFORMAT, "data: ", qtrainer_load_bytes(t, part, n));
    free(part);
  }
  OK(qtrainer_save_bytes(&again, t)); /* it is as it was */
  assert_int_equal(qblob_size(again), size);
  assert_memory_equal(qblob_data(again), qblob_data(whole), size);
  OK(qtrainer_load_bytes(t, qblob_data(whole), size));
  qblob_free(again);
  qblob_free(whole);
  qtrainer_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_number_in_observers),
                                     cmocka_unit_test(bins_of_observers),
                                     cmocka_unit_test(edges_of_observers),
                                     cmocka_unit_test(parts_of_checkpoints),
                                     cmocka_unit_test_setup_teardown(grids_of_checkpoints, make_file, remove_file),
                                     cmocka_unit_test_setup_teardown(bytes_are_those_of_files, make_file, remove_file)};
  return cmocka_run_group_tests_name("saved_state", tests, NULL, NULL);
}
