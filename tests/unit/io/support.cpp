// SPDX-License-Identifier: Apache-2.0
#include "io/support.hpp"

#include <vector>

#include "base/file.hpp"

namespace qtn::test {

std::string content_of(const std::string &path) {
  const std::vector<char> bytes = read_file(path);
  return {bytes.begin(), bytes.end()};
}

std::string bytes_of(const Tensor &t) {
  const Tensor flat = t.to_contiguous();
  return {flat.as<const char>(), flat.nbytes()};
}

void expect_equal(const Tensor &a, const Tensor &b) {
  assert_int_equal(a.dtype(), b.dtype());
  assert_true(a.shape() == b.shape());
  assert_true(bytes_of(a) == bytes_of(b));
  assert_int_equal(a.quantized(), b.quantized());
  if (a.quantized()) assert_true(*a.quantizer() == *b.quantizer());
}

}  // namespace qtn::test
