// SPDX-License-Identifier: Apache-2.0
// qsession_run on the digits network, but for its first: it allocates the output and its handle, and takes no lock.
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

}  // namespace

int main() {
  const int64_t shape[] = {1, 1, 8, 8};
  qtensor *x = nullptr, *y = nullptr;
  int faults = 0;
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
