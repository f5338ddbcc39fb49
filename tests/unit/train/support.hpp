// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: attributes of golden files, and the same with every number of threads.
#pragma once

#include "base/parallel.hpp"
#include "ops/support.hpp"
#include "varied.hpp"

namespace qtn::test {

Attrs attrs_of(const nlohmann::json &items);

template <class Body>
void for_thread_counts(Body body) {
  for (const int threads : {1, 2, 3, 16}) {
    set_default_threads(threads);
    body();
  }
  set_default_threads(0);
}

}  // namespace qtn::test
