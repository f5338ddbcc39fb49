// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace qtn::ops {

/// What normalizations add to a variance where the file says nothing: a float32, as files have it.
inline constexpr double kDefaultEpsilon = static_cast<double>(1e-5f);

}  // namespace qtn::ops
