/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of bindings.py in C, in the same process and on the same library: a session, run again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "qtensor/qtensor.h"

static qsession *session;
static qtensor *input;

static void need(qstatus status) {
  if (status == QTN_OK) return;
  fprintf(stderr, "bindings.c: %s\n", qerror_message());
  exit(1);
}

void prepare(const char *path, float *data, const int64_t *shape, size_t rank, size_t nbytes) {
  qmodel *model = NULL;
  qattrs *attrs = NULL;
  need(qmodel_load(&model, path));
  need(qattrs_create(&attrs));
  need(qattrs_set_int(attrs, "threads", 1));
  need(qsession_create(&session, model, attrs));
  need(qtensor_wrap(&input, QTN_FLOAT32, shape, rank, NULL, data, nbytes, NULL, NULL));
  qattrs_free(attrs);
  qmodel_free(model);
}

/* Microseconds for a run, its output freed. */
double run(size_t count) {
  const qtensor *inputs[1];
  struct timespec start, stop;
  size_t i;
  inputs[0] = input;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (i = 0; i < count; ++i) {
    qtensor *output = NULL;
    need(qsession_run(&output, 1, session, inputs, 1));
    qtensor_free(output);
  }
  clock_gettime(CLOCK_MONOTONIC, &stop);
  return ((double)(stop.tv_sec - start.tv_sec) * 1e6 + (double)(stop.tv_nsec - start.tv_nsec) / 1e3) / (double)count;
}
