// SPDX-License-Identifier: Apache-2.0
// What DynamicMatMul says of its operands.
#pragma once

namespace qtn::ops {

/// Whether the mean of each row of b is taken off it first. That changes all elements of a row of the product by the
/// same number, of which Softmax takes no notice, and leaves b the bits that its elements differ in.
inline constexpr const char *kCenteredAttr = "centered";

}  // namespace qtn::ops
