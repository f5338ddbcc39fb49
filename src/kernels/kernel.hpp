// SPDX-License-Identifier: Apache-2.0
// How a family of kernels is listed and chosen: rows of kernels.inc, most specialised first, `ref` last.
//
// A kernel sees raw pointers and this folder's headers only, has internal linkage, and gives the bits of `ref`.
#pragma once

#include <span>

#include "base/cpu.hpp"

namespace qtn::kernels {

/// The first row that the instruction set allows and that fits; the last row is `ref` and always does.
template <class Kernel, class Fits>
const Kernel &choose(std::span<const Kernel> rows, Isa allowed, const Fits &fits) {
  for (const Kernel &row : rows)
    if (row.isa <= allowed && cpu_has(row.isa) && fits(row)) return row;
  return rows.back();
}

template <class Kernel>
const Kernel &choose(std::span<const Kernel> rows, Isa allowed) {
  return choose(rows, allowed, [](const Kernel &) { return true; });
}

}  // namespace qtn::kernels
