// SPDX-License-Identifier: Apache-2.0
// Instruction sets: what this CPU has, and what dispatch may use now.
#pragma once

namespace qtn {

/// Ordered within an architecture: each level may run every kernel of the levels below it. From neon on they are those of
/// AArch64.
enum class Isa { scalar, avx2, avxvnni, avx512, avx512vnni, amx, neon, dotprod, i8mm };

const char *isa_name(Isa isa);

/// The level in force: the highest of this CPU, lowered by QTENSOR_ISA or set_isa(). Read when kernels are chosen.
Isa isa();

/// Lowers the level. Throws QTN_EINVAL for an unknown name and QTN_EUNSUPPORTED for a level above what this CPU has, or
/// of another architecture.
void set_isa(const char *name);

/// Whether this CPU can run kernels of the given set, whatever the level in force.
bool cpu_has(Isa isa);

}  // namespace qtn
