/* SPDX-License-Identifier: Apache-2.0
 *
 * The library can be opened, used, closed so that it and its threads are gone, and opened again.
 * Usage: reopen LIBRARY */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qtensor/qtensor.h"

enum { SIDE = 512 }; /* large enough for two threads */

typedef struct functions {
  uint32_t (*version)(void);
  qstatus (*set_threads)(int32_t count);
  const char *(*message)(void);
  qstatus (*create)(qtensor **out, qdtype dtype, const int64_t *shape, size_t rank, const qquantizer *quantizer,
                    const void *data, size_t nbytes);
  qstatus (*op_run)(qtensor **outputs, size_t output_count, const char *op, const qtensor *const *inputs,
                    size_t input_count, const qattrs *attrs);
  qstatus (*item)(double *out, const qtensor *t);
  qstatus (*select)(qtensor **out, const qtensor *t, int32_t axis, int64_t index);
  void (*free)(qtensor *t);
} functions;

static void expect(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "failed: %s\n", what);
  exit(1);
}

static void load(void *library, const char *name, void *function, size_t size) {
  void *address = dlsym(library, name);
  expect(address != NULL, name);
  memcpy(function, &address, size); /* ISO C has no conversion from an object pointer to a function pointer */
}

#define LOAD(field, name) load(library, name, &api.field, sizeof api.field)

/* The threads of this process. */
static int threads(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  const struct dirent *entry;
  if (!tasks) return -1;
  while ((entry = readdir(tasks)) != NULL) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

static void use(void *library) {
  const int64_t shape[2] = {SIDE, SIDE};
  float *ones = malloc(SIDE * SIDE * sizeof *ones);
  qtensor *a = NULL, *product = NULL, *row = NULL, *element = NULL;
  const qtensor *inputs[2];
  double value = 0;
  size_t i;
  functions api;
  LOAD(version, "qlib_version");
  LOAD(set_threads, "qlib_set_threads");
  LOAD(message, "qerror_message");
  LOAD(create, "qtensor_create");
  LOAD(op_run, "qop_run");
  LOAD(item, "qtensor_item");
  LOAD(select, "qtensor_select");
  LOAD(free, "qtensor_free");

  expect(ones != NULL, "malloc");
  for (i = 0; i < SIDE * SIDE; ++i) ones[i] = 1.0f;
  expect(api.version() == (QTN_VERSION_MAJOR << 16 | QTN_VERSION_MINOR << 8 | QTN_VERSION_PATCH), "version");
  expect(api.set_threads(2) == QTN_OK, "set_threads");
  expect(api.create(&a, QTN_FLOAT32, shape, 2, NULL, ones, SIDE * SIDE * sizeof *ones) == QTN_OK, "create");
  inputs[0] = inputs[1] = a;
  expect(api.op_run(&product, 1, "MatMul", inputs, 2, NULL) == QTN_OK, "MatMul");
  expect(api.select(&row, product, 0, SIDE - 1) == QTN_OK, "select");
  expect(api.select(&element, row, 0, SIDE - 1) == QTN_OK, "select");
  expect(api.item(&value, element) == QTN_OK && value == SIDE, "item");
  api.free(product);
  expect(api.op_run(&product, 1, "MatMul", inputs, 1, NULL) != QTN_OK && product == NULL,
         "MatMul of one operand fails");
  expect(strlen(api.message()) > 0, "message");
  api.free(element);
  api.free(row);
  api.free(a);
  free(ones);
}

int main(int argc, char **argv) {
  const int own = threads();
  int round;
  expect(argc == 2, "usage: reopen LIBRARY");
  for (round = 0; round < 3; ++round) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    expect(library != NULL, "dlopen");
    use(library);
    expect(own < 0 || threads() > own, "a thread of the library idles");
    expect(dlclose(library) == 0, "dlclose");
    expect(threads() == own, "its threads are gone after dlclose");
    expect(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL, "the library is gone after dlclose");
  }
  puts("opened, used and closed three times");
  return 0;
}
