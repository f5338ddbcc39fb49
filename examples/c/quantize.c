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

static void check(qstatus status, const char *what) {
  if (status == QTN_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, qstatus_name(status), qerror_message());
  exit(1);
}
#define CHECK(call) check((call), #call)

/* Sample `index` as a batch of one, which the library frees. */
static qstatus give(qtensor **inputs, size_t input_count, size_t index, void *samples) {
  (void)input_count;
  return qtensor_slice(inputs, samples, 0, (int64_t)index, (int64_t)index + 1, 1);
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
  qmodel *model, *int8;
  qconfig *config;
  qsession *before, *after;
  qtensor *samples;
  int64_t i, count, same = 0;
  if (argc != 4) {
    fprintf(stderr, "usage: %s IN.onnx OUT.onnx SAMPLES.npy\n", argv[0]);
    return 2;
  }
  CHECK(qtensor_load_npy(&samples, argv[3]));
  count = qtensor_shape(samples)[0];

  CHECK(qmodel_load(&model, argv[1]));
  CHECK(qconfig_create(&config, "onnx"));
  CHECK(qmodel_quantize(&int8, NULL, model, config, give, (size_t)count, NULL, NULL, samples));
  CHECK(qmodel_save(int8, argv[2], NULL));

  CHECK(qsession_create(&before, model, NULL));
  CHECK(qsession_create(&after, int8, NULL));
  for (i = 0; i < count; ++i) {
    qtensor *sample, *a, *b;
    CHECK(give(&sample, 1, (size_t)i, samples));
    a = run(before, sample);
    b = run(after, sample);
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
  qmodel_free(model);
  qconfig_free(config);
  qtensor_free(samples);
  return same * 100 >= count * 95 ? 0 : 1;
}
