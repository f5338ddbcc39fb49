// SPDX-License-Identifier: Apache-2.0
// The larger and the smaller of floats or of vectors of them: NaN is either, and b is of equal ones.
#pragma once

namespace qtn::kernels {
namespace {

struct Larger {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Smaller {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};

}  // namespace
}  // namespace qtn::kernels
