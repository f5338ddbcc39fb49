// SPDX-License-Identifier: Apache-2.0
// The kinds of loss: one constructor each, listed in loss.cpp.
#pragma once

#include <memory>

#include "train/loss.hpp"

namespace qtn::train {

std::unique_ptr<Loss> make_cross_entropy(const Attrs &attrs);
std::unique_ptr<Loss> make_mse(const Attrs &attrs);
std::unique_ptr<Loss> make_huber(const Attrs &attrs);
std::unique_ptr<Loss> make_distillation(const Attrs &attrs);

}  // namespace qtn::train
