// SPDX-License-Identifier: Apache-2.0
// qsession_run on the digits network and qlayer_run, except for their first: they allocate the output and its handle,
// and take no lock. With state, from the third run on: only the handle of what becomes the state.
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "counting.hpp"
#include "qtensor/qtensor.h"

namespace {

constexpr long kAllocationsOfAnOutput = 3;  // the handle, the elements, and who owns those

void need(qstatus status) {
  if (status == QTN_OK) return;
  std::fprintf(stderr, "%s\n", qerror_message());
  std::exit(1);
}

qmodel *quantized(const qtensor *x) {
  qmodel *m = nullptr, *prepared = nullptr, *int8 = nullptr;
  qconfig *config = nullptr;
  need(qmodel_load(&m, QTN_DIGITS "/digits.onnx"));
  need(qconfig_create(&config, "onnx"));
  need(qmodel_prepare(&prepared, m, config, QTN_PTQ));
  need(qmodel_calibrate(prepared, &x, 1));
  need(qmodel_convert(&int8, prepared, nullptr));
  qmodel_free(m);
  qmodel_free(prepared);
  qconfig_free(config);
  return int8;
}

/// A layer that is run on integers of its grid, to integers or to floats.
int faults_of_layer(const char *kind, const int64_t *weight_shape, const int64_t *x_shape, size_t rank, qdtype dtype,
                    bool to_integers) {
  const double scale = 0.03125;
  qtensor *weight = nullptr, *floats = nullptr, *x = nullptr, *y = nullptr;
  qquantizer *grid = nullptr;
  qconfig *config = nullptr;
  qlayer *layer = nullptr;
  need(qtensor_create(&weight, QTN_FLOAT32, weight_shape, rank, nullptr, nullptr, 0));
  need(qtensor_create(&floats, QTN_FLOAT32, x_shape, rank, nullptr, nullptr, 0));
  need(qquantizer_create(&grid, dtype, QTN_PER_TENSOR_AFFINE, 0, &scale, nullptr, 1, nullptr));
  need(qtensor_quantize(&x, floats, grid));
  need(qconfig_create(&config, "onnx"));
  need(qlayer_create(&layer, kind, weight, nullptr, config, grid, to_integers ? grid : nullptr, nullptr));
  need(qlayer_run(&y, layer, x));
  qtensor_free(y);
  const qtn::test::Counts taken = qtn::test::counts_of([&] { need(qlayer_run(&y, layer, x)); });
  std::printf("%s: %ld allocations, %ld locks\n", kind, taken.allocations, taken.locks);
  for (qtensor *t : {weight, floats, x, y}) qtensor_free(t);
  qquantizer_free(grid);
  qconfig_free(config);
  qlayer_free(layer);
  return taken.allocations != kAllocationsOfAnOutput || taken.locks != 0;
}

int faults_of_layers() {
  const int64_t matrix[] = {7, 12}, rows[] = {5, 12}, kernel[] = {6, 3, 3, 3}, image[] = {2, 3, 8, 8};
  int faults = 0;
  need(qlib_set_threads(1));
  for (const qdtype dtype : {QTN_UINT8, QTN_INT8})
    for (const bool to_integers : {false, true}) {
      faults += faults_of_layer("linear", matrix, rows, 2, dtype, to_integers);
      faults += faults_of_layer("conv2d", kernel, image, 4, dtype, to_integers);
    }
  return faults;
}

int faults_of_state() {
  const int64_t shape[] = {1, 3};
  constexpr size_t kOutputs = 4;
  qmodel *m = nullptr;
  qsession *session = nullptr;
  qtensor *x = nullptr, *y[kOutputs];
  need(qmodel_load(&m, QTN_NETWORKS "/cell.onnx"));
  need(qsession_create(&session, m, nullptr));
  need(qsession_bind(session, 1, 1));
  need(qtensor_create(&x, QTN_FLOAT32, shape, 2, nullptr, nullptr, 0));
  const qtensor *const inputs[] = {x, nullptr};
  const auto run = [&] {
    need(qsession_run(y, kOutputs, session, inputs, 2));
    for (qtensor *t : y) qtensor_free(t);
  };
  int faults = 0;
  for (int i = 0; i < 6; ++i) {
    const qtn::test::Counts taken = qtn::test::counts_of(run);
    std::printf("state, run %d: %ld allocations, %ld locks\n", i, taken.allocations, taken.locks);
    if (i < 2) continue;
    faults += taken.allocations != (kOutputs - 1) * kAllocationsOfAnOutput + 1 || taken.locks != 0;
  }
  qsession_free(session);
  qmodel_free(m);
  qtensor_free(x);
  return faults;
}

}  // namespace

int main() {
  const int64_t shape[] = {1, 1, 8, 8};
  qtensor *x = nullptr, *y = nullptr;
  int faults = faults_of_layers() + faults_of_state();
  need(qtensor_create(&x, QTN_FLOAT32, shape, 4, nullptr, nullptr, 0));
  qmodel *int8 = quantized(x);
  for (const int threads : {1, 2}) {
    qsession *session = nullptr;
    need(qlib_set_threads(threads));
    need(qsession_create(&session, int8, nullptr));
    const qtn::test::Counts first = qtn::test::counts_of([&] { need(qsession_run(&y, 1, session, &x, 1)); });
    faults += first.allocations <= kAllocationsOfAnOutput || first.locks == 0;  // else the counters see nothing
    qtensor_free(y);
    const qtn::test::Counts taken = qtn::test::counts_of([&] { need(qsession_run(&y, 1, session, &x, 1)); });
    qtensor_free(y);
    qsession_free(session);
    std::printf("%d threads: %ld allocations, %ld locks\n", threads, taken.allocations, taken.locks);
    faults += taken.allocations != kAllocationsOfAnOutput;
    faults += threads == 1 && taken.locks != 0;
  }
  qmodel_free(int8);
  qtensor_free(x);
  return faults == 0 ? 0 : 1;
}
