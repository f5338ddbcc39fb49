// SPDX-License-Identifier: Apache-2.0
// What WalkAllocations.java calls.
#include <cstdint>

#include "../capi/failing_new.h"

extern "C" {

void Java_WalkAllocations_fail(void *, void *, std::int64_t allocation) { fail_new(static_cast<long>(allocation)); }

std::uint8_t Java_WalkAllocations_stop(void *, void *) { return stop_failing_new() ? 1 : 0; }
}
