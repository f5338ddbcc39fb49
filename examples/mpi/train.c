/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a classifier in several processes, each with its part of the samples, in C and MPI alone:
 *
 *     mpicc train.c $(pkg-config --cflags --libs qtensor) -o train
 *     mpirun -np 2 ./train untrained.onnx train_images.npy train_labels.npy
 *
 * First in float, then quantization-aware what has come of that. Beside it each process trains alone, with all parts
 * one after the other, and compares in the end. */
#include <math.h>
#include <mpi.h>
#include <qtensor/qtensor.h>
#include <stdio.h>
#include <stdlib.h>

enum { PART = 32, STEPS = 40 }; /* samples of a process in a step */

/* Sums parameters and statistics. Two parts have only one sum, so two processes and one end with the same bits; more
 * may be added up in another order, and a network in training makes much of a last bit. */
static const double kTolerance = 1e-6;

static void check(qstatus status, const char *what) {
  if (status == QTN_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, qstatus_name(status), qerror_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check((call), #call)

typedef struct data {
  const char *images, *labels; /* files */
  int64_t parts;               /* that there are samples for */
} data;

static qtensor *part_of(const char *path, int64_t part) {
  qtensor *t;
  CHECK(qtensor_load_rows(&t, path, NULL, part * PART, (part + 1) * PART));
  return t;
}

static void backward(qtrainer *t, const data *d, int64_t part) {
  qtensor *image = part_of(d->images, part % d->parts), *label = part_of(d->labels, part % d->parts);
  const qtensor *inputs[] = {image}, *targets[] = {label};
  double loss;
  CHECK(qtrainer_backward(&loss, t, inputs, 1, targets, 1));
  qtensor_free(image);
  qtensor_free(label);
}

typedef qstatus (*shared_tensor)(qtensor **out, qtrainer *t, size_t index);

/* What the trainer shares is written: the mean over all processes. */
static void average(qtrainer *t, shared_tensor which, size_t count) {
  int processes;
  size_t i;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  for (i = 0; i < count; ++i) {
    qtensor *shared;
    void *elements;
    float *values;
    int64_t k, n;
    CHECK(which(&shared, t, i));
    CHECK(qtensor_data_mut(&elements, shared));
    values = elements;
    n = qtensor_numel(shared);
    MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (k = 0; k < n; ++k) values[k] /= (float)processes;
    qtensor_free(shared);
  }
}

/* The largest difference of two trainers' tensors. */
static double difference(qtrainer *a, qtrainer *b, shared_tensor which, size_t count) {
  double largest = 0;
  size_t i;
  for (i = 0; i < count; ++i) {
    qtensor *x, *y;
    const float *xs, *ys;
    int64_t k;
    CHECK(which(&x, a, i));
    CHECK(which(&y, b, i));
    xs = qtensor_data(x);
    ys = qtensor_data(y);
    for (k = 0; k < qtensor_numel(y); ++k) largest = fmax(largest, fabs((double)xs[k] - (double)ys[k]));
    qtensor_free(x);
    qtensor_free(y);
  }
  return largest;
}

static qtrainer *trainer_of(const qmodel *m, double rate) {
  qattrs *attrs;
  qtrainer *t;
  CHECK(qattrs_create(&attrs));
  CHECK(qattrs_set_float(attrs, "lr", rate));
  CHECK(qattrs_set_float(attrs, "momentum", 0.9));
  CHECK(qattrs_set_int(attrs, "threads", 1)); /* processes share the CPU */
  CHECK(qtrainer_create(&t, m, attrs));
  qattrs_free(attrs);
  return t;
}

static void step_together(qtrainer *t, const data *d, int64_t step, int process, int processes) {
  backward(t, d, step * processes + process);
  average(t, qtrainer_gradient, qtrainer_parameter_count(t));
  CHECK(qtrainer_update(t));
  average(t, qtrainer_buffer, qtrainer_buffer_count(t));
}

static void step_alone(qtrainer *t, const data *d, int64_t step, int processes) {
  int part;
  for (part = 0; part < processes; ++part) backward(t, d, step * processes + part);
  CHECK(qtrainer_update(t));
}

/* The model that the processes have trained. */
static qmodel *train(const char *what, const qmodel *m, double rate, const data *d) {
  qtrainer *together = trainer_of(m, rate), *alone = trainer_of(m, rate);
  qmodel *trained;
  double here[2], all[2];
  int process, processes;
  int64_t step;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  for (step = 0; step < STEPS; ++step) {
    step_together(together, d, step, process, processes);
    step_alone(alone, d, step, processes);
  }
  here[0] = difference(alone, together, qtrainer_parameter, qtrainer_parameter_count(alone));
  here[1] = difference(alone, together, qtrainer_buffer, qtrainer_buffer_count(alone));
  MPI_Allreduce(here, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (process == 0)
    printf("%s: %d processes, %d steps: parameters differ from one process' by %.1e, statistics by %.1e\n", what,
           processes, STEPS, all[0], all[1]);
  if (processes == 2 && (all[0] > kTolerance || all[1] > kTolerance)) MPI_Abort(MPI_COMM_WORLD, 1);
  CHECK(qtrainer_model(&trained, together));
  qtrainer_free(together);
  qtrainer_free(alone);
  return trained;
}

/* Calibrated before, so that the grids of activations stay: those of a process would follow its own parts. */
static qmodel *quantization_aware(const qmodel *m, const data *d) {
  qconfig *config;
  qmodel *prepared;
  int64_t part;
  CHECK(qconfig_create(&config, "onnx"));
  CHECK(qmodel_prepare(&prepared, m, config, QTN_QAT));
  for (part = 0; part < 8; ++part) {
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
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    fprintf(stderr, "usage: %s MODEL.onnx IMAGES.npy LABELS.npy\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  d.images = argv[2];
  d.labels = argv[3];
  CHECK(qtensor_load_npy(&labels, d.labels));
  d.parts = qtensor_numel(labels) / PART;
  qtensor_free(labels);
  CHECK(qmodel_load(&model, argv[1]));
  trained = train("float", model, 0.01, &d);
  prepared = quantization_aware(trained, &d);
  quantized = train("quantization-aware", prepared, 0.001, &d);
  CHECK(qmodel_convert(&int8, quantized, NULL)); /* in each process the same */
  qmodel_free(int8);
  qmodel_free(quantized);
  qmodel_free(prepared);
  qmodel_free(trained);
  qmodel_free(model);
  MPI_Finalize();
  return 0;
}
