// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: golden tensors.
#pragma once

#include <string>
#include <vector>

#include "golden.hpp"

namespace qtn::test {

std::vector<double> numbers(const nlohmann::json &tensor);

Shape shape_of(const nlohmann::json &tensor);

Tensor float_tensor(const nlohmann::json &tensor);

}  // namespace qtn::test
