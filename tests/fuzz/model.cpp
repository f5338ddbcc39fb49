// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX file.
#include "oracle.hpp"

namespace fuzz {
namespace {

void test(const std::uint8_t *data, std::size_t size) {
  const Model model = make<Model>(qmodel_load_bytes, data, size);
  Dice dice(seed_of(data, size));
  if (model) check_model(model.get(), dice);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{64} << 20, fuzz::test)
