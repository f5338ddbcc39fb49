// SPDX-License-Identifier: Apache-2.0
// The kinds of optimizer: one constructor each, listed in optimizer.cpp.
#pragma once

#include <memory>
#include <span>

#include "train/optimizer.hpp"

namespace qtn::train {

std::unique_ptr<Optimizer> make_sgd(const Attrs &attrs, std::span<const Parameter> parameters);
std::unique_ptr<Optimizer> make_adam(const Attrs &attrs, std::span<const Parameter> parameters);
std::unique_ptr<Optimizer> make_adamw(const Attrs &attrs, std::span<const Parameter> parameters);

/// Throws QTN_EINVAL on a value out of range.
OptimizerSettings optimizer_settings(const Attrs &attrs, double weight_decay);

}  // namespace qtn::train
