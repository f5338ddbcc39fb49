/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a classifier in several processes, in float and then quantization-aware, in C and MPI alone:
 *
 *     mpicc train.c $(pkg-config --cflags --libs qtensor) -o train
 *     mpirun -np 4 ./train untrained.onnx train_images.npy train_labels.npy 40 float.onnx int8.onnx
 *
 * Both files are the same for 1, 2 and 4 processes, to the byte: a step has four parts whatever the number of
 * processes, and gradients are added up along one tree, (0 + 1) + (2 + 3). A process has a trainer for each of its
 * parts, because a trainer adds up the gradients of several batches in the order in which it gets them. */
#include <limits.h>
#include <mpi.h>
#include <qtensor/qtensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 4, ROWS = 32 }; /* of a step; samples of a part */

static int process, processes, own; /* own: parts of each process, which follow each other */

static void check(qstatus status, const char *what) {
  if (status == QTN_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, qstatus_name(status), qerror_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check((call), #call)

static void refuse(const char *why) {
  fprintf(stderr, "train: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

typedef struct data {
  const char *images, *labels; /* files */
  int64_t parts;               /* that there are samples for */
} data;

static qtensor *part_of(const char *path, int64_t part) {
  qtensor *t;
  CHECK(qtensor_load_rows(&t, path, NULL, part * ROWS, (part + 1) * ROWS));
  return t;
}

static double backward(qtrainer *t, const data *d, int64_t part) {
  qtensor *image = part_of(d->images, part % d->parts), *label = part_of(d->labels, part % d->parts);
  const qtensor *inputs[] = {image}, *targets[] = {label};
  double loss;
  CHECK(qtrainer_backward(&loss, t, inputs, 1, targets, 1));
  qtensor_free(image);
  qtensor_free(label);
  return loss;
}

/* What trainers share: their gradients, or the running statistics of their normalizations. */
typedef struct shared {
  qstatus (*tensor)(qtensor **out, qtrainer *t, size_t index);
  size_t tensors;
  int64_t elements;
  float *sums[PARTS], *received;
} shared;

static float *floats(int64_t count) {
  float *values = malloc((size_t)count * sizeof *values + 1);
  if (!values) refuse("out of memory");
  return values;
}

static void share(shared *s, qstatus (*tensor)(qtensor **, qtrainer *, size_t), size_t tensors, qtrainer *t) {
  size_t i;
  int part;
  s->tensor = tensor;
  s->tensors = tensors;
  s->elements = 0;
  for (i = 0; i < tensors; ++i) {
    qtensor *one;
    CHECK(tensor(&one, t, i));
    s->elements += qtensor_numel(one);
    qtensor_free(one);
  }
  if (s->elements > INT_MAX) refuse("MPI counts the elements of a message in an int");
  for (part = 0; part < own; ++part) s->sums[part] = floats(s->elements);
  s->received = floats(s->elements);
}

static void unshare(shared *s) {
  int part;
  for (part = 0; part < own; ++part) free(s->sums[part]);
  free(s->received);
}

/* Copies the tensors of a trainer to an array, or back. */
static void copy(const shared *s, qtrainer *t, float *values, int back) {
  size_t i;
  for (i = 0; i < s->tensors; ++i) {
    qtensor *one;
    void *elements;
    size_t count;
    CHECK(s->tensor(&one, t, i));
    CHECK(qtensor_data_mut(&elements, one));
    count = (size_t)qtensor_numel(one);
    memcpy(back ? elements : values, back ? values : elements, count * sizeof *values);
    values += count;
    qtensor_free(one);
  }
}

static void add(float *sum, const float *other, int64_t count) {
  int64_t i;
  for (i = 0; i < count; ++i) sum[i] += other[i];
}

/* What the trainers share becomes the mean over all parts: sums of pairs of parts, of pairs of these, and so on, which
 * are the same pairs whether both are in this process or one is in another. */
static void average(shared *s, qtrainer **trainers) {
  int part, width;
  int64_t i;
  for (part = 0; part < own; ++part) copy(s, trainers[part], s->sums[part], 0);
  for (width = 1; width < own; width *= 2)
    for (part = 0; part < own; part += 2 * width) add(s->sums[part], s->sums[part + width], s->elements);
  for (width = 1; width < processes; width *= 2) {
    const int other = process ^ width;
    MPI_Sendrecv(s->sums[0], (int)s->elements, MPI_FLOAT, other, 0, s->received, (int)s->elements, MPI_FLOAT, other, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    add(s->sums[0], s->received, s->elements);
  }
  for (i = 0; i < s->elements; ++i) s->sums[0][i] /= PARTS;
  for (part = 0; part < own; ++part) copy(s, trainers[part], s->sums[0], 1);
}

static qtrainer *trainer_of(const qmodel *m, double rate, int part) {
  qattrs *attrs;
  qtrainer *t;
  CHECK(qattrs_create(&attrs));
  CHECK(qattrs_set_float(attrs, "lr", rate));
  CHECK(qattrs_set_float(attrs, "momentum", 0.9));
  CHECK(qattrs_set_int(attrs, "threads", 1)); /* processes share the CPU */
  CHECK(qattrs_set_int(attrs, "seed", part)); /* of what Dropout drops */
  CHECK(qtrainer_create(&t, m, attrs));
  qattrs_free(attrs);
  return t;
}

/* The model that the processes have trained, in each of them the same. */
static qmodel *train(const char *what, const qmodel *m, double rate, const data *d, int64_t steps) {
  qtrainer *trainers[PARTS];
  shared gradients, statistics;
  qmodel *trained;
  double loss = 0, mean, taken = 0, start = MPI_Wtime();
  int64_t step;
  int part;
  for (part = 0; part < own; ++part) trainers[part] = trainer_of(m, rate, process * own + part);
  share(&gradients, qtrainer_gradient, qtrainer_parameter_count(trainers[0]), trainers[0]);
  share(&statistics, qtrainer_buffer, qtrainer_buffer_count(trainers[0]), trainers[0]);
  for (step = 0; step < steps; ++step) {
    double before;
    for (loss = 0, part = 0; part < own; ++part)
      loss += backward(trainers[part], d, step * PARTS + process * own + part);
    before = MPI_Wtime();
    average(&gradients, trainers);
    taken += MPI_Wtime() - before;
    for (part = 0; part < own; ++part) CHECK(qtrainer_update(trainers[part]));
    before = MPI_Wtime();
    average(&statistics, trainers);
    taken += MPI_Wtime() - before;
  }
  MPI_Reduce(&loss, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (process == 0)
    printf("%s: %d processes, %lld steps, loss %.4f; averaging took %.1f %% of the time\n", what, processes,
           (long long)steps, mean / PARTS, 100 * taken / (MPI_Wtime() - start));
  CHECK(qtrainer_model(&trained, trainers[0]));
  unshare(&gradients);
  unshare(&statistics);
  for (part = 0; part < own; ++part) qtrainer_free(trainers[part]);
  return trained;
}

/* Calibrated before, so that the grids of activations stay: those of a process would follow its own parts. */
static qmodel *quantization_aware(const qmodel *m, const data *d) {
  qconfig *config;
  qmodel *prepared;
  int64_t part;
  CHECK(qconfig_create(&config, "onnx"));
  CHECK(qmodel_prepare(&prepared, m, config, QTN_QAT));
  for (part = 0; part < d->parts && part < 8; ++part) {
    qtensor *image = part_of(d->images, part);
    const qtensor *inputs[] = {image};
    CHECK(qmodel_calibrate(prepared, inputs, 1));
    qtensor_free(image);
  }
  qconfig_free(config);
  return prepared;
}

int main(int argc, char **argv) {
  data d;
  qtensor *labels;
  qmodel *model, *trained, *prepared, *quantized, *int8;
  int64_t steps;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (argc != 7) refuse("usage: train MODEL.onnx IMAGES.npy LABELS.npy STEPS FLOAT.onnx INT8.onnx");
  if (PARTS % processes != 0) refuse("a step has 4 parts: start 1, 2 or 4 processes");
  own = PARTS / processes;
  d.images = argv[2];
  d.labels = argv[3];
  steps = strtol(argv[4], NULL, 10);
  CHECK(qtensor_load_npy(&labels, d.labels));
  d.parts = qtensor_numel(labels) / ROWS;
  qtensor_free(labels);
  if (d.parts == 0) refuse("a part has 32 samples, and there are fewer");
  CHECK(qmodel_load(&model, argv[1]));
  trained = train("float", model, 0.01, &d, steps);
  prepared = quantization_aware(trained, &d);
  quantized = train("quantization-aware", prepared, 0.001, &d, steps);
  CHECK(qmodel_convert(&int8, quantized, NULL));
  if (process == 0) {
    CHECK(qmodel_save(trained, argv[5], NULL));
    CHECK(qmodel_save(int8, argv[6], NULL));
  }
  qmodel_free(int8);
  qmodel_free(quantized);
  qmodel_free(prepared);
  qmodel_free(trained);
  qmodel_free(model);
  MPI_Finalize();
  return 0;
}
