// SPDX-License-Identifier: Apache-2.0
// In builds with QTN_CHECKS, memory that has not been written yet holds what no result survives: floats that are
// signalling NaN, and bytes that are large.
#pragma once

#include <cstddef>

namespace qtn {

#ifdef QTN_CHECKS
void poison(void *memory, std::size_t bytes);
#else
inline void poison(void *, std::size_t) {}
#endif

}  // namespace qtn
