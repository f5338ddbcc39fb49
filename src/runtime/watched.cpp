// SPDX-License-Identifier: Apache-2.0
#include "runtime/watched.hpp"

#include "runtime/runner.hpp"

namespace qtn::runtime {

Watched::Watched(const graph::Graph &g, const std::vector<graph::ValueId> &values)
    : runner_(std::make_unique<Runner>(g, values)) {}
Watched::~Watched() = default;
Watched::Watched(Watched &&) noexcept = default;
Watched &Watched::operator=(Watched &&) noexcept = default;

void Watched::run(std::span<const Tensor> inputs, const Watch &watch) {
  std::vector<const Tensor *> pointers;
  for (const Tensor &x : inputs) pointers.push_back(&x);
  runner_->run(pointers, {}, {&watch, nullptr, nullptr});
}

}  // namespace qtn::runtime
