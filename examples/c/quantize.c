/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantizes an ONNX model with one float32 image input and runs it, in C alone:
 *
 *     cc quantize.c $(pkg-config --cflags --libs qtensor) -o quantize
 *     ./quantize digits.onnx digits-int8.onnx calibration.npy
 *
 * The .npy file holds float32 samples along its first axis. */
#include <qtensor/qtensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(qstatus status, const char *what) {
  if (status == QTN_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, qstatus_name(status), qerror_message());
  exit(1);
}
#define CHECK(call) check((call), #call)

static void give_up(const char *path, const char *why) {
  fprintf(stderr, "%s: %s\n", path, why);
  exit(1);
}

static void free_memory(void *data, void *ctx) {
  (void)ctx;
  free(data);
}

/* A little-endian float32 .npy file as a tensor. A header is text like {'descr': '<f4', ..., 'shape': (200, 1, 8, 8),
 * }. */
static qtensor *read_npy(const char *path) {
  unsigned char start[10];
  char header[1024];
  const char *at;
  int64_t shape[8];
  size_t rank = 0, count = 1, length;
  float *values;
  qtensor *t;
  FILE *file = fopen(path, "rb");
  if (!file || fread(start, 1, sizeof start, file) != sizeof start) give_up(path, "cannot be read");
  length = (size_t)start[8] | (size_t)start[9] << 8;
  if (memcmp(start, "\x93NUMPY\x01", 7) != 0 || length >= sizeof header || fread(header, 1, length, file) != length)
    give_up(path, "is no .npy file of version 1");
  header[length] = '\0';
  at = strstr(header, "'shape': (");
  if (!at || !strstr(header, "'<f4'") || strstr(header, "'fortran_order': True"))
    give_up(path, "does not hold row-major float32");
  for (at += strlen("'shape': ("); *at != ')' && rank < 8;) {
    char *end;
    shape[rank] = strtol(at, &end, 10);
    if (end == at || shape[rank] < 1 || shape[rank] > 100000000 / (int64_t)count) give_up(path, "has an odd shape");
    count *= (size_t)shape[rank++];
    at = end + strspn(end, ", ");
  }
  values = malloc(count * sizeof *values);
  if (!values || fread(values, sizeof *values, count, file) != count) give_up(path, "ends too early");
  fclose(file);
  CHECK(qtensor_wrap(&t, QTN_FLOAT32, shape, rank, NULL, values, count * sizeof *values, free_memory, NULL));
  return t;
}

/* Sample i as a batch of one. */
static qtensor *sample_of(const qtensor *samples, int64_t i) {
  qtensor *sample;
  CHECK(qtensor_slice(&sample, samples, 0, i, i + 1, 1));
  return sample;
}

static qtensor *run(const qsession *session, const qtensor *sample) {
  qtensor *output;
  CHECK(qsession_run(&output, 1, session, &sample, 1));
  return output;
}

static size_t highest(const qtensor *scores) {
  const float *values = qtensor_data(scores);
  size_t i, best = 0;
  for (i = 1; i < qtensor_nbytes(scores) / sizeof *values; ++i)
    if (values[i] > values[best]) best = i;
  return best;
}

int main(int argc, char **argv) {
  qmodel *model, *prepared, *int8;
  qconfig *config;
  qsession *before, *after;
  qtensor *samples;
  int64_t i, count, same = 0;
  if (argc != 4) {
    fprintf(stderr, "usage: %s IN.onnx OUT.onnx SAMPLES.npy\n", argv[0]);
    return 2;
  }
  samples = read_npy(argv[3]);
  count = qtensor_shape(samples)[0];

  CHECK(qmodel_load(&model, argv[1]));
  CHECK(qconfig_create(&config, "onnx"));
  CHECK(qmodel_prepare(&prepared, model, config, QTN_PTQ));
  for (i = 0; i < count; ++i) {
    qtensor *sample = sample_of(samples, i);
    const qtensor *inputs[] = {sample};
    CHECK(qmodel_calibrate(prepared, inputs, 1));
    qtensor_free(sample);
  }
  CHECK(qmodel_convert(&int8, prepared, NULL));
  CHECK(qmodel_save(int8, argv[2], NULL));

  CHECK(qsession_create(&before, model, NULL));
  CHECK(qsession_create(&after, int8, NULL));
  for (i = 0; i < count; ++i) {
    qtensor *sample = sample_of(samples, i), *a = run(before, sample), *b = run(after, sample);
    same += highest(a) == highest(b);
    qtensor_free(sample);
    qtensor_free(a);
    qtensor_free(b);
  }
  printf("qtensor %u.%u on %s: int8 agrees with float on %ld of %ld samples\n", (unsigned)(qlib_version() >> 16),
         (unsigned)(qlib_version() >> 8 & 255), qlib_isa(), (long)same, (long)count);

  qsession_free(before);
  qsession_free(after);
  qmodel_free(int8);
  qmodel_free(prepared);
  qmodel_free(model);
  qconfig_free(config);
  qtensor_free(samples);
  return same * 100 >= count * 95 ? 0 : 1;
}
