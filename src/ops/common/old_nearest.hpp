// SPDX-License-Identifier: Apache-2.0
// How Resize of opset 10 rounds to the nearest element: down along axes that grow, up along those that shrink. Only a node
// that is being read says so, and no file: onnx/old_nearest.cpp makes of it what later opsets have.
#pragma once

#include "core/attrs.hpp"

namespace qtn::ops {

inline constexpr const char *kRoundsByScale = "_rounds_by_scale";

inline bool rounds_by_scale(const Attrs &attrs) { return attrs.get_int(kRoundsByScale, 0) != 0; }

}  // namespace qtn::ops
