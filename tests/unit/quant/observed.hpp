// SPDX-License-Identifier: Apache-2.0
// What the tests of observers share: data, and observers of every kind.
#pragma once

#include <string>

#include "quant/observe/observer.hpp"
#include "support.hpp"

namespace qtn::test {

Tensor random_tensor(unsigned seed, const Shape &shape, float mean = 0, float deviation = 1);

/// With what a kind cannot do without.
std::unique_ptr<quant::Observer> make_kind(std::string_view kind,
                                           std::initializer_list<std::pair<const char *, Attr>> items = {});

}  // namespace qtn::test
