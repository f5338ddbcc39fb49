/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process gets only when it needs it: threads, and a BLAS. The tests depend on their order. */
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char path[] = "/tmp/qtensor-lazy-XXXXXX";
static qmodel *model;

static int threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  const struct dirent *entry;
  int count = 0;
  assert_non_null(tasks);
  while ((entry = readdir(tasks)) != NULL) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

static int blas_is_loaded(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int found = 0;
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) found |= strstr(line, "/libopenblas") || strstr(line, "/libblas");
  fclose(maps);
  return found;
}

static qtensor *image(void) {
  static const float pixels[64] = {0.5f, 1.0f, 0.25f};
  return FLOATS(pixels, DIMS(1, 1, 8, 8));
}

static void *nothing(void *argument) { return argument; }

/* Quantizes the digits network in a process of its own: calibration has kernels for floats, too. */
static int set_up(void **state) {
  int status = 0;
  pid_t child;
  pthread_t first;
  (void)state;
  assert_int_not_equal(close(mkstemp(path)), -1);
  child = fork();
  if (child == 0) {
    qmodel *m = NULL, *prepared = NULL, *int8 = NULL;
    qconfig *config = NULL;
    qtensor *x = image();
    const qtensor *inputs[] = {x};
    const int made =
        qmodel_load(&m, QTN_DIGITS "/digits.onnx") == QTN_OK && qconfig_create(&config, "onnx") == QTN_OK &&
        qmodel_prepare(&prepared, m, config, QTN_PTQ) == QTN_OK && qmodel_calibrate(prepared, inputs, 1) == QTN_OK &&
        qmodel_convert(&int8, prepared, NULL) == QTN_OK && qmodel_save(int8, path, NULL) == QTN_OK;
    _exit(made && !blas_is_loaded() ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  /* With the first thread ThreadSanitizer starts one of its own, which is not to be counted. */
  assert_int_equal(pthread_create(&first, NULL, nothing, NULL), 0);
  assert_int_equal(pthread_join(first, NULL), 0);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  qmodel_free(model);
  return unlink(path);
}

/* Makes a session of the int8 model and runs it. */
static void run_model(void) {
  qtensor *x = image(), *y = NULL;
  const qtensor *inputs[] = {x};
  qsession *session = NULL;
  OK(qsession_create(&session, model, NULL));
  OK(qsession_run(&y, 1, session, inputs, 1));
  qtensor_free(x);
  qtensor_free(y);
  qsession_free(session);
}

static void int8_on_one_thread_needs_neither(void **state) {
  const int before = threads();
  (void)state;
  OK(qlib_set_threads(1));
  OK(qmodel_load(&model, path));
  run_model();
  assert_int_equal(threads(), before);
  assert_false(blas_is_loaded());
}

static void threads_start_at_the_first_parallel_run(void **state) {
  const int before = threads();
  (void)state;
  OK(qlib_set_threads(3));
  assert_int_equal(threads(), before);
  run_model();
  assert_in_range(threads(), before + 1, before + 2); /* as many as small steps are worth */
  assert_false(blas_is_loaded());
}

static void a_product_of_floats_loads_a_blas(void **state) {
  static const float values[] = {1, 2, 3, 4}, square[] = {7, 10, 15, 22};
  qtensor *x = FLOATS(values, DIMS(2, 2)), *y = NULL;
  const qtensor *inputs[] = {x, x};
  (void)state;
  OK(qop_run(&y, 1, "MatMul", inputs, 2, NULL));
  check_floats(y, square, 4, 0);
  assert_true(blas_is_loaded());
  qtensor_free(x);
  qtensor_free(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(int8_on_one_thread_needs_neither),
      cmocka_unit_test(threads_start_at_the_first_parallel_run),
      cmocka_unit_test(a_product_of_floats_loads_a_blas),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
