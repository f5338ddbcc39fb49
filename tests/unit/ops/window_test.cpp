// SPDX-License-Identifier: Apache-2.0
// How many windows pools and convolutions have, against PyTorch, and windows that are refused.
#include "ops/common/window.hpp"

#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

using ops::Window;

Attrs attrs_of(const nlohmann::json &c) {
  Attrs attrs;
  const auto pad = c.at("pad").get<std::int64_t>();
  attrs.set("strides", Ints{c.at("stride").get<std::int64_t>()});
  attrs.set("dilations", Ints{c.at("dilation").get<std::int64_t>()});
  attrs.set("pads", Ints{pad, pad});
  return attrs;
}

void counts(void **) {
  std::size_t checked = 0;
  const nlohmann::json file = golden("quant/shapes.json");
  for (const auto &c : file.at("window")) {
    const auto size = c.at("size").get<std::int64_t>(), kernel = c.at("kernel").get<std::int64_t>();
    const Shape x{1, 1, size};
    const Window conv = ops::conv_window(attrs_of(c), x, {1, 1, kernel});
    if (conv.out[0] != c.at("conv").get<std::int64_t>()) fail_test(c.dump(), ": conv ", conv.out[0]);
    for (const bool ceil : {false, true}) {
      Attrs attrs = attrs_of(c);
      attrs.set("kernel_shape", Ints{kernel});
      attrs.set("ceil_mode", std::int64_t{ceil});
      const Window pool = ops::pool_window("MaxPool", attrs, x);
      if (pool.out[0] != c.at("pool").at(ceil ? 1 : 0).get<std::int64_t>())
        fail_test(c.dump(), ceil ? ": ceil " : ": floor ", pool.out[0]);
    }
    ++checked;
  }
  assert_true(checked > 150);
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::counts)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
