// SPDX-License-Identifier: Apache-2.0
// MatMulNBits with accuracy_level 4: sessions give the bits of the operator, whatever computes them.
#include "onnx/onnx.hpp"
#include "ops/op.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

struct Product {
  std::int64_t k, n, bits, block;
  bool zeros = false, bias = false;

  std::int64_t blocks() const { return (k + block - 1) / block; }
  Attrs attrs(std::int64_t level = 4) const {
    return test::attrs({{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}, {"accuracy_level", level}});
  }
};

Tensor bytes(const Shape &shape, std::mt19937 &random) {
  const Tensor t(QTN_UINT8, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
  return t;
}

/// B, scales, zero points and bias.
struct Constants {
  Constants(const Product &p, std::mt19937 &random)
      : b(bytes({p.n, p.blocks(), p.block * p.bits / 8}, random)),
        scales(test::random({p.n * p.blocks()}, 0.01f, 0.1f, random())),
        zeros(bytes({p.n * ((p.blocks() * p.bits + 7) / 8)}, random)),
        bias(test::random({p.n}, -1, 1, random())) {}

  Tensor b, scales, zeros, bias;
};

/// Two products of one input.
graph::Graph network(const Product &p, const Constants &first, const Constants &second, const Shape &x,
                     std::int64_t level = 4) {
  GraphBuilder b;
  b.input("x", x);
  for (const auto &[name, c] : {std::pair{"first", &first}, std::pair{"second", &second}}) {
    const std::string node = name;
    b.constant(node + ".b", c->b).constant(node + ".scales", c->scales);
    if (p.zeros) b.constant(node + ".zeros", c->zeros);
    if (p.bias) b.constant(node + ".bias", c->bias);
    b.node("MatMulNBits", node,
           {"x", node + ".b", node + ".scales", p.zeros ? node + ".zeros" : "", "", p.bias ? node + ".bias" : ""},
           {node + ".y"}, p.attrs(level));
  }
  return b.build({"first.y", "second.y"});
}

Tensor by_operator(const Product &p, const Constants &c, const Tensor &x) {
  const Tensor *inputs[] = {&x, &c.b, &c.scales, p.zeros ? &c.zeros : nullptr, nullptr, p.bias ? &c.bias : nullptr};
  const Attrs attributes = p.attrs();
  return ops::run_op(*ops::find_op("MatMulNBits"), {attributes, inputs})[0];
}

Shape any_size(std::size_t rank) {
  const std::vector<std::int64_t> sizes(rank, -1);
  return Shape(std::span(sizes));
}

std::size_t steps_of(const runtime::Session &session, const Tensor &x, const std::string &kernel) {
  const Tensor *inputs[] = {&x};
  const auto profile = nlohmann::json::parse(session.profile(inputs));
  std::size_t count = 0;
  for (const auto &node : profile.at("nodes")) count += node.at("kernel").get<std::string>().starts_with(kernel);
  return count;
}

void test_bits(void **) {
  std::mt19937 random(3);
  for (const Product &p : {Product{96, 37, 4, 32}, Product{150, 130, 4, 64, true, true}, Product{70, 33, 8, 16, true},
                           Product{40, 70, 8, 128, false, true}, Product{48, 24, 2, 16, true}}) {
    const Constants first(p, random), second(p, random);
    for (const Shape &shape : {Shape{1, p.k}, Shape{2, 3, p.k}, Shape{21, p.k}, Shape{0, p.k}}) {
      const Tensor x = test::random(shape, -2, 2, 5);
      const Tensor *inputs[] = {&x};
      const Tensor wants[] = {by_operator(p, first, x), by_operator(p, second, x)};
      const graph::Graph g = network(p, first, second, any_size(shape.size()));
      each_isa([&](const std::string &isa) {
        for (const int threads : {1, 3}) {
          const runtime::Session session(g, {runtime::Engine::native, threads});
          const auto got = session.run(inputs);
          for (const std::size_t i : {0, 1})
            expect_equal(got[i], wants[i], cat(p.k, "x", p.n, " of ", p.bits, " bits, ", isa, ", ", to_string(shape)));
          // Both products read one set of integers.
          if (x.count() > 0) assert_int_equal(steps_of(session, x, "blocks_"), 3);
        }
      });
    }
  }
}

/// A row has the same result in every batch.
void test_rows(void **) {
  std::mt19937 random(4);
  const Product p{128, 80, 4, 32};
  const Constants c(p, random);
  const Tensor x = test::random({13, p.k}, -1, 1, 6), all = by_operator(p, c, x);
  for (std::int64_t i = 0; i < 13; ++i) {
    const Tensor row(QTN_FLOAT32, {1, p.k});
    std::copy_n(x.as<const float>() + i * p.k, p.k, row.as<float>());
    const Tensor y = by_operator(p, c, row);
    assert_memory_equal(y.data(), all.as<const float>() + i * p.n, static_cast<std::size_t>(p.n) * sizeof(float));
  }
}

/// Other levels ask for no less than floats.
void test_levels(void **) {
  std::mt19937 random(5);
  const Product p{64, 40, 4, 32};
  const Constants c(p, random);
  const Tensor x = test::random({2, p.k}, -1, 1, 6);
  for (const std::int64_t level : {0, 1, 2, 3})
    assert_int_equal(steps_of(runtime::Session(network(p, c, c, x.shape(), level), {}), x, "blocks_"), 0);
}

/// Weights that become known at run time only.
void test_computed_weights(void **) {
  std::mt19937 random(6);
  const Product p{64, 40, 4, 32};
  const Constants c(p, random);
  graph::Graph g = network(p, c, c, {2, p.k});
  for (const char *name : {"first.scales", "second.scales"})
    for (std::size_t v = 0; v < g.values.size(); ++v)
      if (g.values[v].name == name) {
        g.values[v].constant = Tensor();
        g.inputs.push_back(static_cast<graph::ValueId>(v));
      }
  const Tensor x = test::random({2, p.k}, -1, 1, 6);
  const Tensor *inputs[] = {&x, &c.scales, &c.scales};
  expect_equal(runtime::Session(g, {}).run(inputs)[0], by_operator(p, c, x), "computed scales");
}

/// Files keep the level, and every engine gives the bits.
void test_files(void **) {
  std::mt19937 random(7);
  const Product p{96, 24, 4, 32, true, true};
  const Constants c(p, random);
  const Tensor x = test::random({3, p.k}, -1, 1, 6), want = by_operator(p, c, x);
  const Tensor *inputs[] = {&x};
  const std::string file = onnx::serialize(network(p, c, c, x.shape()), {21});
  const graph::Graph g = onnx::parse(std::as_bytes(std::span(file)), {});
  assert_int_equal(node_named(g, "first").attrs.get_int("accuracy_level", 0), 4);
  for (const auto engine : {runtime::Engine::native, runtime::Engine::reference})
    expect_equal(runtime::Session(g, {engine, 1}).run(inputs)[0], want, "a file");
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_rows), cmocka_unit_test(test_levels),
                              cmocka_unit_test(test_computed_weights), cmocka_unit_test(test_files)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
