// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: files and tensors as their bytes.
#pragma once

#include <cstring>
#include <string>

#include "base/file.hpp"
#include "check.hpp"
#include "folder.hpp"

namespace qtn::test {

inline std::string content_of(const std::string &path) {
  const std::vector<char> bytes = read_file(path);
  return {bytes.begin(), bytes.end()};
}

/// Elements in row-major order.
inline std::string bytes_of(const Tensor &t) {
  const Tensor flat = t.to_contiguous();
  return {flat.as<const char>(), flat.nbytes()};
}

inline void expect_equal(const Tensor &a, const Tensor &b) {
  assert_int_equal(a.dtype(), b.dtype());
  assert_true(a.shape() == b.shape());
  assert_true(bytes_of(a) == bytes_of(b));
  assert_int_equal(a.quantized(), b.quantized());
  if (a.quantized()) assert_true(*a.quantizer() == *b.quantizer());
}

}  // namespace qtn::test
