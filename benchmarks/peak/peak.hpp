// SPDX-License-Identifier: Apache-2.0
// What benchmarks measure against: the fastest 8-bit dot product of the instruction set in force, on one core.
#pragma once

namespace qtn::bench {

/// CPU time of this thread: other programs on the machine do not count.
double thread_seconds();

/// Multiply-accumulates in a second, at this moment.
double peak_macs();
/// The same, in a cycle.
double peak_macs_per_cycle();

}  // namespace qtn::bench
