// SPDX-License-Identifier: Apache-2.0
// How slots lie, and how windows lie over images.
#pragma once

#include "ops/common/window.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

bool is_contiguous(const SlotForm &f);
/// An image, maybe with gaps, and not contiguous as well.
bool lies_as_image(const SlotForm &f);
/// Contiguous, or an image whose pixels lie side by side.
bool is_dense(const SlotForm &f);
/// Axes in any order, one element for each place.
bool is_gapless(const SlotForm &f);

/// Strides without gaps of axes in this order, by the strides of others of as many.
Shape dense_strides(const Shape &shape, const Shape &order);

/// Channels last for images and volumes, contiguous for everything else.
Shape integer_strides(const Shape &shape);
/// Without gaps, in the order of x, which has as many axes; where elements of x repeat, as above.
Shape strides_as(const SlotForm &x, const Shape &shape);

/// A window over images: height, width, and as the third axis depth, which lines and images have 1 of.
ops::Window over_images(const ops::Window &window);
ops::Window whole_image(const Shape &x);

/// Whether it needs no third axis.
bool is_flat(const ops::Window &window);

/// Lets lines lie that stand upright: axes of length 1 along which no window moves come first instead of last in a window
/// over images, and in what it reads and makes, whose elements stay where they are. Kernels go along the last axis.
void lay_down(ops::Window &window, Edge &x, Edge &y);
ops::Window laid_down(ops::Window window);

/// The shape of x with other channels and these spatial lengths, in the order of a window over images.
Shape image_shape(const Shape &x, std::int64_t channels, const ops::Window::Dims &spatial);

/// Padding behind the image that windows read; what lies behind the last of them is not part of it.
std::int64_t read_padding(const ops::Window &window, std::size_t axis);

/// Whether padding and steps stand in proportion to the image, as in every network. Scratch memory of kernels grows
/// with both, so other windows are left to the operators' definitions, which look at taps one by one.
bool is_ordinary(const ops::Window &window);

}  // namespace qtn::runtime
