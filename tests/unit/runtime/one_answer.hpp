// SPDX-License-Identifier: Apache-2.0
// What sessions of networks in float32 promise of their numbers.
#pragma once

#include "../sums.hpp"
#include "support.hpp"

namespace qtn::test {

inline std::vector<Tensor> run(const graph::Graph &g, const Tensor &x, runtime::Engine engine, int threads) {
  const Tensor *inputs[] = {&x};
  std::vector<Tensor> outputs = runtime::Session(g, {engine, threads}).run(inputs);
  for (Tensor &y : outputs) y = y.to_contiguous();
  return outputs;
}

/// The same bits with all instruction sets and numbers of threads, which are those of the operators' definitions
/// except for the order of sums in so many layers.
inline void expect_one_answer(const graph::Graph &g, const Tensor &x, const std::string &what, int layers) {
  const std::vector<Tensor> want = run(g, x, runtime::Engine::native, 1),
                            by_definition = run(g, x, runtime::Engine::reference, 1);
  for (std::size_t o = 0; o < want.size(); ++o)
    if (!equal_but_for_sums(want[o], by_definition[o], 0, layers * 1e-6))
      fail_test(what, ": output ", o, " is not that of the operators");
  each_isa([&](const std::string &name) {
    for (const int threads : {1, 3}) {
      const std::vector<Tensor> got = run(g, x, runtime::Engine::native, threads);
      for (std::size_t o = 0; o < want.size(); ++o)
        expect_equal(got[o], want[o], cat(what, ", ", name, ", ", threads, " threads, output ", o));
    }
  });
}

}  // namespace qtn::test
