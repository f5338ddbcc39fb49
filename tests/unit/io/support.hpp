// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: files and tensors as their bytes.
#pragma once

#include <string>

#include "check.hpp"
#include "folder.hpp"

namespace qtn::test {

std::string content_of(const std::string &path);

/// Elements in row-major order.
std::string bytes_of(const Tensor &t);

void expect_equal(const Tensor &a, const Tensor &b);

}  // namespace qtn::test
