// SPDX-License-Identifier: Apache-2.0
// What a call through the C API costs: one operator on a tensor so small that its arithmetic is nothing.
#include "micro.hpp"
#include "qtensor/qtensor.h"

namespace qtn::micro {

void register_call() {
  benchmark::RegisterBenchmark("call/qop_run_relu_16", [](benchmark::State &state) {
    constexpr std::int64_t kShape[] = {16};
    const float values[16] = {-1, 1};
    qtensor *x = nullptr, *y = nullptr;
    if (qtensor_create(&x, QTN_FLOAT32, kShape, 1, nullptr, values, sizeof values) != QTN_OK)
      return state.SkipWithError(qerror_message());
    for (auto _ : state) {
      if (qop_run(&y, 1, "Relu", &x, 1, nullptr) != QTN_OK) {
        state.SkipWithError(qerror_message());
        break;
      }
      qtensor_free(y);
    }
    qtensor_free(x);
  });
}

}  // namespace qtn::micro
