// SPDX-License-Identifier: Apache-2.0
// What nodes are read as takes no more memory than a file of their size may ask for, and what several are read as alike
// is made once.
#include <algorithm>
#include <set>

#include "base/limits.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

/// Loads it within so many bytes.
graph::Graph parse_within(std::int64_t bytes, const ModelText &model) {
  struct Limited {
    explicit Limited(std::int64_t bytes) { set_limit(Limit::load_bytes, bytes); }
    ~Limited() { set_limit(Limit::load_bytes, 0); }
  };
  const Limited limited(bytes);
  return parse(model.bytes());
}

/// Nodes one behind the other, each of which reads the one before it and the operands.
ModelText chain_of(int count, const NodeText &node, const std::function<void(NodeText &, int)> &change = {}) {
  ModelText model;
  for (int i = 0; i < count; ++i) {
    model.nodes.push_back(node);
    NodeText &last = model.nodes.back();
    last.inputs.insert(last.inputs.begin(), i == 0 ? "x" : cat("v", i));
    last.outputs = {i + 1 == count ? "y" : cat("v", i + 1)};
    last.name = cat("n", i);
    if (change) change(last, i);
  }
  return model;
}

/// Nodes whose attributes say as many numbers as they like: the same ones, or others each.
void lists_that_attributes_count(void **) {
  constexpr std::int64_t kLong = 1 << 16;
  const NodeText node{"MRotaryEmbedding", {"i", "c", "c"}, {}, "", "com.microsoft"};
  const auto model = [&](std::int64_t step) {
    ModelText text = chain_of(100, node, [&](NodeText &n, int i) {
      if (i == 0) n.inputs[0] = "c";
      n.attributes = {ints_attribute("mrope_section", {kLong, kLong, kLong - i * step})};
    });
    // Positions and cosines are of a shape that a run says.
    text.nodes.insert(text.nodes.begin(), {{"Squeeze", {"x"}, {"l"}},
                                           {"Cast", {"l"}, {"r"}, "", "", {int_attribute("to", QTN_INT64)}},
                                           {"Reshape", {"x", "r"}, {"c"}},
                                           {"Cast", {"c"}, {"i"}, "", "", {int_attribute("to", QTN_INT64)}}});
    return text;
  };
  assert_true(parse_within(1 << 23, model(0)).nodes.size() > 500);
  try {
    parse(model(1).bytes());
    fail_test("no error");
  } catch (const Error &e) {
    assert_int_equal(e.status(), QTN_ENOMEM);
    const std::size_t most = (std::size_t{1} << 26) + 64 * model(1).bytes().size();
    const std::string text = cat("more than ", most, " for a file of this size");
    if (!std::string(e.what()).starts_with("model: node \"n4") || !std::string(e.what()).ends_with(text))
      fail_test(e.what());
  }
}

/// Nodes that share their codes share the matrix that these stand for.
void products_that_share_their_codes(void **) {
  constexpr std::int64_t kSide = 256;
  for (const std::int64_t turns : {0, 1}) {
    const NodeText node{"MatMulBnb4",
                        {"b", "s"},
                        {},
                        "",
                        "com.microsoft",
                        {int_attribute("N", kSide), int_attribute("K", kSide), int_attribute("quant_type", 1),
                         int_attribute("block_size", 64), int_attribute("transB", turns)}};
    ModelText model = chain_of(500, node);
    model.initializers = {
        raw_tensor<std::uint8_t>("b", QTN_UINT8, {kSide * kSide / 2}, std::vector<std::uint8_t>(kSide * kSide / 2)),
        raw_tensor<std::uint16_t>("s", QTN_FLOAT16, {kSide * kSide / 64},
                                  std::vector<std::uint16_t>(kSide * kSide / 64))};
    model.shape = {1, kSide};
    const graph::Graph g = parse_within(1 << 22, model);
    assert_int_equal(g.nodes.size(), 500);
    std::set<const void *> matrices;
    for (const graph::Node &product : g.nodes) matrices.insert(g.value(product.inputs[1]).constant.data());
    assert_int_equal(matrices.size(), 1);
  }
}

/// Small constants that broadcast to a large one, of which a position or the shape is asked for.
void sums_of_constants(void **) {
  constexpr std::int64_t kSide = 1 << 14;
  const std::vector<std::int64_t> zeros(kSide);
  ModelText model{.nodes = {{"Add", {"a", "b"}, {"p"}, "sum"},
                            {"SequenceConstruct", {"x", "x"}, {"s"}, "make"},
                            {"SequenceAt", {"s", "p"}, {"y"}, "at"}},
                  .initializers = {raw_tensor<std::int64_t>("a", QTN_INT64, {kSide, 1}, zeros),
                                   raw_tensor<std::int64_t>("b", QTN_INT64, {1, kSide}, zeros)}};
  assert_true(parse_within(1 << 23, model).nodes.size() > 1);
  model.nodes[1].inputs = {"p", "p"};
  model.nodes[2].inputs = {"s", "i"};
  model.nodes.push_back({"Cast", {"x"}, {"i"}, "", "", {int_attribute("to", QTN_INT64)}});
  assert_true(parse_within(1 << 23, model).nodes.size() > 1);
}

/// A loop that the file counts becomes nodes only where these take little.
void iterations_of_large_nodes(void **) {
  const auto loops = [](std::size_t operands) {
    const std::vector<NodeText> body{{"Identity", {"b"}, {"a"}},
                                     {"SequenceAt", {"s0", "zero"}, {"q"}},
                                     {"Max", std::vector<std::string>(operands, "q"), {"r"}},
                                     {"SequenceInsert", {"s0", "r", "zero"}, {"s1"}},
                                     {"SequenceErase", {"s1", "zero"}, {"s2"}}};
    const ModelText model{
        .nodes =
            {{"SequenceConstruct", {"x", "x"}, {"s"}},
             {"Loop", {"n", "yes", "s"}, {"t"}, "", "", {graph_attribute("body", {"i", "b", "s0"}, body, {"a", "s2"})}},
             {"SequenceAt", {"t", "zero"}, {"y"}}},
        .initializers = {raw_tensor<std::int64_t>("n", QTN_INT64, {}, {200}),
                         raw_tensor<std::int64_t>("zero", QTN_INT64, {}, {0}),
                         raw_tensor<std::uint8_t>("yes", QTN_BOOL, {}, {1})}};
    const std::vector<std::string> ops = op_names(parse(model.bytes()));
    return std::ranges::count(ops, "Loop");
  };
  assert_int_equal(loops(2), 0);
  assert_int_equal(loops(1 << 14), 1);
}

/// However many graphs they are in.
void nodes_of_all_graphs(void **) {
  std::vector<NodeText> nodes{{"SequenceConstruct", std::vector<std::string>(4096, "x"), {"s"}}};
  for (int i = 0; i < 20; ++i) nodes.push_back({"SequenceAt", {"s", "i"}, {cat("v", i)}, cat("at", i)});
  ModelText model{.nodes = {{"Cast", {"x"}, {"i"}, "", "", {int_attribute("to", QTN_INT64)}},
                            {"If",
                             {"x"},
                             {"y"},
                             "",
                             "",
                             {graph_attribute("then_branch", {}, nodes, {"v0"}),
                              graph_attribute("else_branch", {}, nodes, {"v0"})}}}};
  expect_error(QTN_EUNSUPPORTED, "(SequenceAt): what nodes of the file are read as comes to more than 262144 nodes",
               [&] { parse(model.bytes()); });
}

void collect(const graph::Graph &g, std::set<const void *> &found, std::size_t &count) {
  for (const graph::Value &v : g.values)
    if (v.is_constant() && v.constant.count() == 64) {
      found.insert(v.constant.data());
      ++count;
    }
  for (const graph::Node &node : g.nodes)
    for (const auto &body : node.bodies) collect(*body, found, count);
}

/// Those of a function, of a branch in it, of a loop, of a loop in that and of a branch in it.
void constants_of_graphs_that_are_repeated(void **) {
  std::set<const void *> found;
  std::size_t count = 0;
  collect(onnx::load(cat(QTN_GOLDEN_DIR, "/hostile/constants_that_are_repeated.onnx")), found, count);
  assert_true(count > 10);
  assert_int_equal(found.size(), 5);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(lists_that_attributes_count), cmocka_unit_test(products_that_share_their_codes),
      cmocka_unit_test(sums_of_constants),           cmocka_unit_test(iterations_of_large_nodes),
      cmocka_unit_test(nodes_of_all_graphs),         cmocka_unit_test(constants_of_graphs_that_are_repeated)};
  return cmocka_run_group_tests_name("onnx/composed_memory", tests, nullptr, nullptr);
}
