// SPDX-License-Identifier: Apache-2.0
// GroupNormalization as exporters wrote it before there was one: what becomes the operator, and that the numbers stay.
#include <cmath>

#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "quant/graph_builder.hpp"

namespace qtn::test {
namespace {

/// What differs from how PyTorch writes a normalization of 6 channels in 3 groups.
struct Form {
  Shape x = {2, 6, 5, 4}, declared = {2, 6, 5, 4};
  std::vector<std::int64_t> parts = {0, 3, -1}, whole = {2, 6, 5, 4};
  Shape factor = {6, 1, 1}, addend = {6, 1, 1};
  bool asks_shape = false;  ///< of x, to restore it
  bool shows_middle = false;
  bool convolved = false;  ///< x, by weights that say how many channels there are
};

graph::Graph written(const Form &form) {
  const auto positive = [](const Shape &shape) {
    const Tensor t = GraphBuilder::ramp(shape);
    for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] += 2;
    return t;
  };
  GraphBuilder b;
  b.input(form.convolved ? "image" : "x", form.declared);
  if (form.convolved) b.conv("conv", "image", "c", 6, 6).node("Relu", "relu", {"c"}, {"x"});
  b.constant("parts", Tensor::from_ints(form.parts))
      .constant("scale", positive({3}))
      .constant("shift", GraphBuilder::ramp({3}));
  b.constant("factor", positive(form.factor)).constant("addend", GraphBuilder::ramp(form.addend));
  b.constant("known", Tensor::from_ints(form.whole));
  if (form.asks_shape) b.node("Shape", "shape", {"x"}, {"asked"});
  b.node("Reshape", "part", {"x", "parts"}, {"p"});
  b.node("InstanceNormalization", "norm", {"p", "scale", "shift"}, {"n"}, attrs({{"epsilon", 0.001}}));
  b.node("Reshape", "restore", {"n", form.asks_shape ? "asked" : "known"}, {"w"});
  b.node("Mul", "mul", {"w", "factor"}, {"m"}).node("Add", "add", {"addend", "m"}, {"y"});
  graph::Graph g = b.build(form.shows_middle ? std::vector<std::string>{"y", "m"} : std::vector<std::string>{"y"});
  graph::remove_dead(g);
  return g;
}

void expect(const Form &form, bool named) {
  const graph::Graph g = written(form);
  graph::Graph other = g;
  graph::name_group_normalizations(other);
  if (named) {
    assert_int_equal(other.nodes.size(), form.convolved ? 3 : 1);
    assert_string_equal(other.nodes.back().op->name, "GroupNormalization");
  } else {
    assert_int_equal(other.nodes.size(), g.nodes.size());
  }
  const std::vector<Tensor> x{GraphBuilder::ramp(form.x)};
  const Tensor want = graph::evaluate(g, x)[0], got = graph::evaluate(other, x)[0];
  assert_true(got.shape() == want.shape());
  for (std::int64_t i = 0; i < want.count(); ++i)
    assert_true(std::fabs(got.as<float>()[i] - want.as<float>()[i]) <= 2e-6f * (1 + std::fabs(want.as<float>()[i])));
}

void test_dialects(void **) {
  expect({}, true);
  expect({.parts = {2, 3, 40}}, true);
  expect({.whole = {0, 6, -1, 4}}, true);
  expect({.factor = {1, 6, 1, 1}, .addend = {1, 6, 1, 1}}, true);
  expect({.x = {3, 6, 2, 7}, .declared = {-1, 6, -1, -1}, .asks_shape = true}, true);
  expect({.x = {2, 6, 9}, .declared = {2, 6, 9}, .whole = {2, 6, 9}, .factor = {6, 1}, .addend = {6, 1}}, true);
  expect({.x = {2, 6, 2, 3, 4},
          .declared = {2, 6, 2, 3, 4},
          .whole = {2, 6, 2, 3, 4},
          .factor = {6, 1, 1, 1},
          .addend = {6, 1, 1, 1}},
         true);
}

/// Other shapes, factors of places, groups over samples of a batch that is open, and what others read.
void test_others(void **) {
  expect({.x = {3, 6, 5, 4}, .declared = {3, 6, 5, 4}, .parts = {6, 3, -1}, .whole = {3, 6, 5, 4}}, false);
  expect({.whole = {2, 6, 4, 5}}, false);
  expect({.factor = {6, 5, 1}}, false);
  expect({.factor = {5, 1}}, false);
  expect({.factor = {1, 1, 1}, .addend = {1, 1, 1}}, false);
  expect({.declared = {-1, 6, 5, 4}, .parts = {2, 3, -1}}, false);
  expect({.declared = {-1, 6, 5, 4}}, false);
  expect({.shows_middle = true}, false);
}

/// One channel is repeated where it is multiplied by six, so that how many there are must be known.
void test_channels(void **) {
  expect({.x = {2, 1, 6, 6}, .declared = {-1, 1, -1, 6}, .asks_shape = true}, false);
  expect({.x = {2, 1, 6, 6}, .declared = {-1, -1, 6, 6}, .asks_shape = true}, false);
  expect({.declared = {-1, 6, -1, 4}, .asks_shape = true, .convolved = true}, true);
  expect({.declared = {-1, 6, 5, 4}, .asks_shape = true, .convolved = true}, true);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_dialects), cmocka_unit_test(test_others),
                              cmocka_unit_test(test_channels)};
  return cmocka_run_group_tests_name("group_norms", tests, nullptr, nullptr);
}
