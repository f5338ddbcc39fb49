/* SPDX-License-Identifier: Apache-2.0
 *
 * A power cut leaves the old file or the new one: what is written is on the disk before it gets its name, and then the
 * name is. The library finds these functions in the program before it looks into the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "tiny_model.h"

/* By the library, too. */
#define SEEN __attribute__((visibility("default")))

/* What was done since begin(): W writes, S a file synchronized, R renamed, D a folder synchronized; repeated writes are
 * one. */
static char calls[64];
static size_t call_count;
static int watching;
static ino_t written, renamed; /* files, by their number */

static void note(char call) {
  if (!watching || call_count + 1 >= sizeof calls || (call == 'W' && call_count && calls[call_count - 1] == 'W'))
    return;
  calls[call_count++] = call;
  calls[call_count] = '\0';
}

static struct stat status_of(int fd) {
  struct stat status = {0};
  fstat(fd, &status);
  return status;
}

SEEN ssize_t write(int fd, const void *from, size_t count) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "write");
  if (watching && S_ISREG(status_of(fd).st_mode)) {
    written = status_of(fd).st_ino;
    note('W');
  }
  return real(fd, from, count);
}

SEEN int fsync(int fd) {
  static int (*real)(int);
  const struct stat status = status_of(fd);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fsync");
  if (S_ISDIR(status.st_mode)) note('D');
  if (S_ISREG(status.st_mode) && status.st_ino == written) note('S');
  return real(fd);
}

SEEN int rename(const char *from, const char *to) {
  static int (*real)(const char *, const char *);
  struct stat status = {0};
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "rename");
  if (stat(from, &status) == 0) renamed = status.st_ino;
  note('R');
  return real(from, to);
}

static char folder[] = "/tmp/qtensor-durable-XXXXXX", path[64];

static int begin_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return 1;
  snprintf(path, sizeof path, "%s/file.npy", folder);
  return 0;
}

static int end_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static void begin(void) {
  call_count = 0;
  calls[0] = '\0';
  written = renamed = 0;
  watching = 1;
}

/* The file of that name is the one that was written and synchronized. */
static void check_durable(void) {
  struct stat status = {0};
  watching = 0;
  assert_string_equal(calls, "WSRD");
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_ino, written);
  assert_int_equal(renamed, written);
}

#define DURABLE(call) \
  do {                \
    begin();          \
    OK(call);         \
    check_durable();  \
  } while (0)

static void all_that_is_saved(void **state) {
  tiny_model tiny;
  float values[TINY_INPUTS];
  qmodel *m = NULL, *prepared = NULL;
  qconfig *config = NULL;
  qtrainer *trainer = NULL;
  (void)state;
  tiny_model_make(&tiny);
  tiny_sample(values, 0);
  qtensor *x = FLOATS(values, DIMS(1, 1, 6, 6));
  const qtensor *inputs[] = {x};
  OK(qmodel_load_bytes(&m, tiny.data, tiny.size));
  OK(qconfig_create(&config, "onnx"));
  OK(qmodel_prepare(&prepared, m, config, QTN_PTQ));
  OK(qmodel_calibrate(prepared, inputs, 1));
  OK(qtrainer_create(&trainer, m, NULL));
  for (int again = 0; again < 2; ++again) { /* a new file, and one that replaces another */
    DURABLE(qmodel_save(m, path, NULL));
    DURABLE(qmodel_save_calibration(prepared, path));
    DURABLE(qconfig_save(config, path));
    DURABLE(qtrainer_save(trainer, path));
    DURABLE(qtensor_save(x, path));
    DURABLE(qtensor_save_npy(x, path));
  }
  qtensor_free(x);
  qtrainer_free(trainer);
  qmodel_free(prepared);
  qconfig_free(config);
  qmodel_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_that_is_saved)};
  return cmocka_run_group_tests_name("durable", tests, begin_folder, end_folder);
}
