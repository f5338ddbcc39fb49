/* SPDX-License-Identifier: Apache-2.0
 *
 * Calibrates a network in several processes, each with its part of the samples, and counts what it gets right, in C and MPI
 * alone:
 *
 *     mpicc calibrate.c $(pkg-config --cflags --libs qtensor) -o calibrate
 *     mpirun -np 4 ./calibrate net.onnx calibration.npy int8.onnx test.npy labels.npy
 *
 * The file int8.onnx is the same for any number of processes, to the byte. The processes share a folder, where the parts lie
 * beside int8.onnx until they are merged. */
#include <mpi.h>
#include <qtensor/qtensor.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH = 4096 };

static void check(qstatus status, const char *what) {
  if (status == QTN_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, qstatus_name(status), qerror_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check((call), #call)

static int process, processes;

static qtensor *rows_of(const char *path, int64_t begin, int64_t end) {
  qtensor *rows;
  CHECK(qtensor_load_rows(&rows, path, NULL, begin, end));
  return rows;
}

/* How many rows a file has. */
static int64_t count_of(const char *path) {
  qtensor *all;
  int64_t count;
  CHECK(qtensor_load_npy(&all, path));
  count = qtensor_shape(all)[0];
  qtensor_free(all);
  return count;
}

static void part_path(char *path, const char *output, int part) {
  if (snprintf(path, PATH, "%s.%d.qcal", output, part) >= PATH) MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Each process calibrates with the samples of its share, one by one, and saves what it has seen. */
static void calibrate(qmodel *prepared, const char *samples, const char *output) {
  char path[PATH];
  const int64_t count = count_of(samples);
  const int64_t end = count * (process + 1) / processes;
  int64_t i;
  for (i = count * process / processes; i < end; ++i) {
    qtensor *sample = rows_of(samples, i, i + 1);
    const qtensor *inputs[] = {sample};
    CHECK(qmodel_calibrate(prepared, inputs, 1));
    qtensor_free(sample);
  }
  part_path(path, output, process);
  CHECK(qmodel_save_calibration(prepared, path));
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The first process merges the parts, in the order of the processes, and writes the network in integers. */
static void convert(const qmodel *model, const qconfig *config, const char *output) {
  qmodel *prepared, *int8;
  char path[PATH];
  int part;
  CHECK(qmodel_prepare(&prepared, model, config, QTN_PTQ));
  for (part = 0; part < processes; ++part) {
    part_path(path, output, part);
    CHECK(qmodel_load_calibration(prepared, path));
    remove(path);
  }
  CHECK(qmodel_convert(&int8, prepared, NULL));
  CHECK(qmodel_save(int8, output, NULL));
  qmodel_free(int8);
  qmodel_free(prepared);
}

/* How many samples of its share a process gets right. */
static int64_t right(const qsession *session, const char *images, const char *labels, int64_t count) {
  const int64_t end = count * (process + 1) / processes;
  int64_t i, correct = 0;
  for (i = count * process / processes; i < end; ++i) {
    qtensor *image = rows_of(images, i, i + 1), *label = rows_of(labels, i, i + 1), *scores;
    const qtensor *inputs[] = {image};
    const float *values;
    int64_t k, best = 0;
    CHECK(qsession_run(&scores, 1, session, inputs, 1));
    values = qtensor_data(scores);
    for (k = 1; k < qtensor_numel(scores); ++k)
      if (values[k] > values[best]) best = k;
    correct += best == *(const int64_t *)qtensor_data(label);
    qtensor_free(scores);
    qtensor_free(label);
    qtensor_free(image);
  }
  return correct;
}

int main(int argc, char **argv) {
  qconfig *config;
  qmodel *model, *prepared, *int8;
  qsession *session;
  int64_t count, here, all;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (argc != 6) {
    fprintf(stderr, "usage: %s MODEL.onnx SAMPLES.npy OUT.onnx IMAGES.npy LABELS.npy\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  CHECK(qlib_set_threads(1)); /* processes share the CPU */
  CHECK(qmodel_load(&model, argv[1]));
  CHECK(qconfig_create(&config, "onnx")); /* whose observers merge exactly */
  CHECK(qmodel_prepare(&prepared, model, config, QTN_PTQ));
  calibrate(prepared, argv[2], argv[3]);
  if (process == 0) convert(model, config, argv[3]);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(qmodel_load(&int8, argv[3]));
  CHECK(qsession_create(&session, int8, NULL));
  count = count_of(argv[5]);
  here = right(session, argv[4], argv[5], count);
  MPI_Reduce(&here, &all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (process == 0)
    printf("%d processes: top-1 %.2f %% of %lld\n", processes, 100.0 * (double)all / (double)count, (long long)count);
  qsession_free(session);
  qmodel_free(int8);
  qmodel_free(prepared);
  qconfig_free(config);
  qmodel_free(model);
  MPI_Finalize();
  return 0;
}
