/* SPDX-License-Identifier: Apache-2.0
 *
 * Says where somebody speaks in a WAV file of 8 or 16 kHz, which is read chunk by chunk as a microphone would give it:
 *
 *     cc voice.c $(pkg-config --cflags --libs qtensor) -o voice
 *     ./voice voice.onnx speech.wav [PROBABILITIES]
 *
 * The third file receives the probability of each chunk of 32 ms as a float32 in this machine's order of bytes. */
#include <qtensor/qtensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MILLISECONDS = 32, MOST_SAMPLES = 512, PATIENCE = 10 };

static void check(qstatus status, const char *what) {
  if (status == QTN_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, qstatus_name(status), qerror_message());
  exit(1);
}
#define CHECK(call) check((call), #call)

static void stop(const char *path, const char *why) {
  fprintf(stderr, "%s: %s\n", path, why);
  exit(1);
}

static uint32_t number(const unsigned char *bytes, size_t count) {
  uint32_t value = 0;
  while (count > 0) value = value << 8 | bytes[--count];
  return value;
}

/* Reads up to the samples, and returns how many there are in a second. */
static uint32_t open_wav(FILE *file, const char *path) {
  unsigned char head[12], format[16];
  uint32_t rate = 0, size;
  if (!file) stop(path, "cannot be opened");
  if (fread(head, 1, 12, file) != 12 || memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0)
    stop(path, "is not a WAV file");
  while (fread(head, 1, 8, file) == 8) {
    size = number(head + 4, 4);
    if (memcmp(head, "data", 4) == 0) {
      if (rate == 0) stop(path, "has no format before its samples");
      return rate;
    }
    if (memcmp(head, "fmt ", 4) == 0 && size >= 16) {
      if (fread(format, 1, 16, file) != 16) break;
      size -= 16;
      rate = number(format + 4, 4);
      if (number(format, 2) != 1 || number(format + 2, 2) != 1 || number(format + 14, 2) != 16 ||
          (rate != 8000 && rate != 16000))
        stop(path, "is not of 16 bits, one channel and 8 or 16 kHz");
    }
    if (fseek(file, (long)(size + size % 2), SEEK_CUR) != 0) break;
  }
  stop(path, "has no samples");
  return 0;
}

/* Samples between -1 and 1, the last chunk filled up with silence. 0: there are no more. */
static int read_chunk(FILE *file, float *samples, size_t count) {
  unsigned char bytes[2 * MOST_SAMPLES];
  const size_t read = fread(bytes, 2, count, file);
  size_t i;
  for (i = 0; i < count; ++i) samples[i] = i < read ? (float)(int16_t)number(bytes + 2 * i, 2) / 32768 : 0;
  return read > 0;
}

/* The number of an input or an output of that name. */
static size_t find(const qmodel *model, const char *(*name_of)(const qmodel *, size_t), size_t count,
                   const char *name) {
  size_t i;
  for (i = 0; i < count; ++i)
    if (strcmp(name_of(model, i), name) == 0) return i;
  stop(name, "is missing in the model");
  return 0;
}

static void bind(qsession *session, const qmodel *model, const char *output, const char *input) {
  CHECK(qsession_bind(session, find(model, qmodel_output_name, qmodel_output_count(model), output),
                      find(model, qmodel_input_name, qmodel_input_count(model), input)));
}

/* Prints speech that ends with PATIENCE chunks in a row below 0.35. */
typedef struct speech {
  long first, chunk, quiet; /* first: -1 where nobody speaks */
} speech;

static void print_speech(speech *s, long end) {
  printf("speech from %.3f to %.3f s\n", (double)s->first * MILLISECONDS / 1000, (double)end * MILLISECONDS / 1000);
  fflush(stdout);
  s->first = -1;
}

static void hear(speech *s, float probability) {
  if (s->first < 0) {
    s->quiet = 0;
    if (probability >= 0.5f) s->first = s->chunk;
  } else {
    s->quiet = probability < 0.35f ? s->quiet + 1 : 0;
    if (s->quiet == PATIENCE) print_speech(s, s->chunk + 1 - PATIENCE);
  }
  ++s->chunk;
}

int main(int argc, char **argv) {
  qmodel *model;
  qsession *session;
  qtensor *samples, *rate, *outputs[3];
  const qtensor *inputs[4] = {NULL, NULL, NULL, NULL}; /* NULL: state */
  FILE *wav, *probabilities = NULL;
  speech heard = {-1, 0, 0};
  float chunk[MOST_SAMPLES];
  int64_t shape[2] = {1, 0}, rate_value;
  size_t result, i;
  if (argc != 3 && argc != 4) {
    fprintf(stderr, "usage: %s MODEL.onnx FILE.wav [PROBABILITIES]\n", argv[0]);
    return 2;
  }
  wav = fopen(argv[2], "rb");
  rate_value = (int64_t)open_wav(wav, argv[2]);
  shape[1] = rate_value * MILLISECONDS / 1000;
  if (argc == 4 && !(probabilities = fopen(argv[3], "wb"))) stop(argv[3], "cannot be written");

  CHECK(qmodel_load(&model, argv[1]));
  if (qmodel_input_count(model) != 4 || qmodel_output_count(model) != 3) stop(argv[1], "is not a voice detector");
  CHECK(qsession_create(&session, model, NULL));
  bind(session, model, "memory_next", "memory");
  bind(session, model, "context_next", "context");
  CHECK(qtensor_wrap(&samples, QTN_FLOAT32, shape, 2, NULL, chunk, (size_t)shape[1] * sizeof *chunk, NULL, NULL));
  CHECK(qtensor_create(&rate, QTN_INT64, NULL, 0, NULL, &rate_value, sizeof rate_value));
  inputs[find(model, qmodel_input_name, 4, "samples")] = samples;
  inputs[find(model, qmodel_input_name, 4, "rate")] = rate;
  result = find(model, qmodel_output_name, 3, "probability");

  while (read_chunk(wav, chunk, (size_t)shape[1])) {
    const float *probability;
    CHECK(qsession_run(outputs, 3, session, inputs, 4));
    probability = qtensor_data(outputs[result]);
    if (probabilities) fwrite(probability, sizeof *probability, 1, probabilities);
    hear(&heard, *probability);
    for (i = 0; i < 3; ++i) qtensor_free(outputs[i]);
  }
  if (heard.first >= 0) print_speech(&heard, heard.chunk - heard.quiet);

  if (probabilities && fclose(probabilities) != 0) stop(argv[3], "cannot be written");
  fclose(wav);
  qtensor_free(samples);
  qtensor_free(rate);
  qsession_free(session);
  qmodel_free(model);
  return 0;
}
