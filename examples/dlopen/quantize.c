/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantizes a model and runs it, with nothing but the library that dlopen finds, not even its header:
 *
 *     cc quantize.c -ldl -o quantize && ./quantize digits.onnx digits-int8.onnx calibration.npy */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void *find(const char *name) {
  void *function = dlsym(library, name);
  if (!function) exit((fprintf(stderr, "%s\n", dlerror()), 1));
  return function;
}

static void check(int status) {
  const char *(*message)(void);
  *(void **)&message = find("qerror_message");
  if (status != 0) exit((fprintf(stderr, "%s\n", message()), 1));
}

/* A function that returns a status, by its name and the types of its parameters. */
#define FUNCTION(name, ...) \
  int(*name) __VA_ARGS__;   \
  *(void **)&name = find(#name)

int main(int argc, char **argv) {
  void *data, *model, *config, *prepared, *int8, *session, *scores;
  char text[2000];
  if (argc != 4) return fprintf(stderr, "usage: quantize IN.onnx OUT.onnx SAMPLES.npy\n"), 2;
  library = dlopen("libqtensor.so.0", RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;

  FUNCTION(qtensor_load_npy, (void **out, const char *path));
  FUNCTION(qmodel_load, (void **out, const char *path));
  FUNCTION(qconfig_create, (void **out, const char *name));
  FUNCTION(qmodel_prepare, (void **out, const void *model, const void *config, int mode));
  FUNCTION(qmodel_calibrate, (void *prepared, void *const *inputs, size_t count));
  FUNCTION(qmodel_convert, (void **out, const void *prepared, const void *attrs));
  FUNCTION(qmodel_save, (const void *model, const char *path, const void *attrs));
  FUNCTION(qsession_create, (void **out, const void *model, const void *attrs));
  FUNCTION(qsession_run, (void **outputs, size_t output_count, const void *session, void *const *inputs, size_t count));
  FUNCTION(qtensor_describe, (char *text, size_t size, size_t *length, const void *tensor));

  check(qtensor_load_npy(&data, argv[3]));
  check(qmodel_load(&model, argv[1]));
  check(qconfig_create(&config, "onnx"));
  check(qmodel_prepare(&prepared, model, config, 0));
  check(qmodel_calibrate(prepared, &data, 1));
  check(qmodel_convert(&int8, prepared, NULL));
  check(qmodel_save(int8, argv[2], NULL));
  check(qsession_create(&session, int8, NULL));
  check(qsession_run(&scores, 1, session, &data, 1));
  check(qtensor_describe(text, sizeof text, &(size_t){0}, scores));
  puts(text);
  return 0; /* which frees what there is */
}
