// SPDX-License-Identifier: Apache-2.0
// Instruction sets: what this CPU has, and what dispatch may use now.
#pragma once

namespace qtn {

/// Ordered: each level may run every kernel of the levels below it.
enum class Isa { scalar = 0, avx2 = 1, avxvnni = 2, avx512 = 3, avx512vnni = 4 };

const char *isa_name(Isa isa);

/// The level in force: the highest of this CPU, lowered by QTENSOR_ISA or set_isa(). Read when kernels are chosen.
Isa isa();

/// Lowers the level. Throws QTN_EINVAL for an unknown name and QTN_EUNSUPPORTED for a level above what this CPU has.
void set_isa(const char *name);

/// Whether this CPU can run kernels of the given set, whatever the level in force.
bool cpu_has(Isa isa);

}  // namespace qtn
