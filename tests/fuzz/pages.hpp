// SPDX-License-Identifier: Apache-2.0
// Memory after which there is none: what reads or writes further ends the process.
#pragma once

#include "fuzzing.hpp"

namespace fuzz {

/// The same elements, of which the last ends with a page. The tensor has no quantizer.
Tensor at_the_end_of_a_page(const qtensor *t);

}  // namespace fuzz
