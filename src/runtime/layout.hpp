// SPDX-License-Identifier: Apache-2.0
// How slots lie, and how windows lie over pictures.
#pragma once

#include "ops/window.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

bool is_contiguous(const SlotForm &f);
/// Without gaps: contiguous, or a picture whose pixels lie side by side.
bool is_dense(const SlotForm &f);

/// Channels last for pictures, contiguous for everything else.
Shape integer_strides(const Shape &shape);

/// The two spatial axes that pictures have, of a window over one or two.
ops::Window over_pictures(const ops::Window &window);
ops::Window whole_picture(const Shape &x);

}  // namespace qtn::runtime
