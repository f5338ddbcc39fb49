// SPDX-License-Identifier: Apache-2.0
// What the lanes of a vector come to: halves with halves, and the last four one by one. Nothing passes through memory.
#pragma once

#include <cstddef>

namespace qtn::kernels {
namespace {

template <class T, class Vector, class Fold>
[[gnu::always_inline]] inline T folded(const Vector &v, const Fold &fold) {
  if constexpr (sizeof v == 4 * sizeof(T)) {
    T all = v[0];
    for (int i = 1; i < 4; ++i) all = fold(all, v[i]);
    return all;
  } else {
    using Half [[gnu::vector_size(sizeof v / 2)]] = T;
    Half halves[2];
    __builtin_memcpy(halves, &v, sizeof halves);
    return folded<T>(fold(halves[0], halves[1]), fold);
  }
}

/// The same by F::of() alone, which stays in vectors: where the order of lanes does not matter.
template <class F, class Floats>
[[gnu::always_inline]] inline float folded_in_vectors(Floats v) {
  if constexpr (sizeof v > 16) {
    using Half [[gnu::vector_size(sizeof v / 2)]] = float;
    Half halves[2];
    __builtin_memcpy(halves, &v, sizeof halves);
    return folded_in_vectors<F>(F::of(halves[0], halves[1]));
  } else {
    v = F::of(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
    return F::of(v, __builtin_shufflevector(v, v, 1, 0, 3, 2))[0];
  }
}

}  // namespace
}  // namespace qtn::kernels
