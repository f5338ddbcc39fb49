// SPDX-License-Identifier: Apache-2.0
// Products of floats by matrices that stay in integers: the bits of products by the floats for which these stand.
#include <random>

#include "../sums.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

/// Zero points: in the middle; there or one below, where integers are complements; anywhere.
enum class Zeros { none, complements, any };

/// How a matrix is stored.
struct Stored {
  qdtype dtype;
  std::int64_t block = 0;  ///< 0: a scale for each column; -1: one for all
  Zeros zeros = Zeros::none;
  double least = 0.01;  ///< of the scales
};

std::int64_t lowest(qdtype dtype) {
  switch (dtype) {
    case QTN_INT8:
      return -128;
    case QTN_INT4:
      return -8;
    case QTN_INT2:
      return -2;
    default:
      return 0;
  }
}

std::int64_t highest(qdtype dtype) {
  switch (dtype) {
    case QTN_INT8:
      return 127;
    case QTN_UINT8:
      return 255;
    case QTN_INT4:
      return 7;
    case QTN_UINT4:
      return 15;
    case QTN_INT2:
      return 1;
    default:
      return 3;
  }
}

/// `depth` is the axis over which products sum.
Tensor matrix(const Shape &shape, const Stored &stored, int depth, unsigned seed) {
  std::mt19937 random(seed);
  const std::int64_t low = lowest(stored.dtype), high = highest(stored.dtype);
  const auto any = [&] { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  const Tensor codes(low < 0 ? QTN_INT8 : QTN_UINT8, shape);
  for (std::int64_t i = 0; i < codes.count(); ++i) codes.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(any());
  const std::int64_t blocks = stored.block > 0 ? (shape[static_cast<std::size_t>(depth)] - 1) / stored.block + 1 : 1;
  const std::int64_t count = stored.block < 0 ? 1 : blocks * shape[static_cast<std::size_t>(1 - depth)];
  std::vector<double> scales;
  std::vector<std::int64_t> zeros;
  for (std::int64_t i = 0; i < count; ++i) {
    scales.push_back(static_cast<float>(stored.least * (1 + static_cast<double>(random() % 1000) / 500)));
    const std::int64_t middle = low < 0 ? 0 : (high + 1) / 2;
    zeros.push_back(stored.zeros == Zeros::any           ? any()
                    : stored.zeros == Zeros::complements ? middle - static_cast<std::int64_t>(random() % 2)
                                                         : middle);
  }
  const qscheme scheme = stored.block < 0    ? QTN_PER_TENSOR_AFFINE
                         : stored.block == 0 ? QTN_PER_CHANNEL_AFFINE
                                             : QTN_PER_BLOCK_AFFINE;
  const int axis = stored.block < 0 ? 0 : stored.block == 0 ? 1 - depth : depth;
  return from_plain(codes, stored.dtype)
      .with_quantizer(std::make_shared<Quantizer>(stored.dtype, scheme, axis, scales, zeros, Numerics::onnx,
                                                  std::max<std::int64_t>(0, stored.block)));
}

graph::Graph product(const Tensor &weight, const Shape &x, const char *op, bool transposed, std::int64_t out) {
  GraphBuilder b;
  b.input("x", x).constant("w", dequantize(weight));
  if (op == std::string("Gemm")) {
    b.constant("bias", random({out}, -1, 1, 3));
    b.node("Gemm", "product", {"x", "w", "bias"}, {"sum"}, attrs({{"transB", std::int64_t{transposed}}}));
  } else {
    b.node("MatMul", "product", {"x", "w"}, {"sum"});
  }
  b.node("Relu", "relu", {"sum"}, {"y"});
  return b.build({"y"});
}

graph::Graph with_weight(graph::Graph g, const Tensor &weight) {
  graph::Value &value = g.value(node_named(g, "product").inputs[1]);
  value.constant = weight;
  value.quantizer = weight.quantizer();
  return g;
}

nlohmann::json profile_of(const runtime::Session &session, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  return nlohmann::json::parse(session.profile(inputs));
}

bool stays(const graph::Graph &g, const Tensor &x) {
  const auto profile = profile_of(runtime::Session(g, {runtime::Engine::native, 1}), x);
  for (const auto &node : profile.at("nodes"))
    if (node.at("kernel").get<std::string>().starts_with("codes_")) return true;
  return false;
}

/// Batches, threads and instruction sets give the rows of the float network.
void expect_bits_of_floats(const Stored &stored, std::int64_t k, std::int64_t n, bool transposed, const char *op) {
  const Tensor weight =
      matrix(transposed ? Shape{n, k} : Shape{k, n}, stored, transposed ? 1 : 0, static_cast<unsigned>(k * 7 + n));
  const bool deep = op == std::string("MatMul");
  const graph::Graph floats = product(weight, deep ? Shape{-1, 2, k} : Shape{-1, k}, op, transposed, n);
  const graph::Graph coded = with_weight(floats, weight);
  const std::string best = isa_name(isa());
  for (const std::int64_t batch : {0, 1, 2, 5, 40}) {
    const Tensor x = random(deep ? Shape{batch, 2, k} : Shape{batch, k}, -2, 2, 11);
    if (batch > 1)  // a row of denormals
      for (std::int64_t i = x.count() - k; i < x.count(); ++i) x.as<float>()[i] *= 1e-39f;
    const Tensor *inputs[] = {&x};
    const Tensor want = runtime::Session(floats, {runtime::Engine::native, 1}).run(inputs)[0];
    each_isa([&](const std::string &isa) {
      for (const int threads : {1, 3}) {
        const runtime::Session session(coded, {runtime::Engine::native, threads});
        expect_equal(session.run(inputs)[0], want,
                     cat(op, ", ", k, "x", n, ", blocks of ", stored.block, ", ", isa, ", batch ", batch));
      }
      if (batch > 0 && isa == "avx2" && !stays(coded, x)) fail_test("no step on integers of ", k, "x", n);
    });
  }
}

void test_bits(void **) {
  for (const qdtype dtype : {QTN_INT8, QTN_UINT8, QTN_INT4, QTN_UINT4, QTN_INT2, QTN_UINT2})
    for (const Zeros zeros : {Zeros::none, Zeros::complements, Zeros::any}) {
      expect_bits_of_floats({dtype, 16, zeros}, 77, 40, false, "MatMul");
      expect_bits_of_floats({dtype, 24, zeros}, 61, 130, true, "Gemm");
      expect_bits_of_floats({dtype, 0, zeros}, 53, 33, false, "Gemm");
      expect_bits_of_floats({dtype, 0, zeros}, 90, 70, true, "Gemm");
      expect_bits_of_floats({dtype, -1, zeros}, 64, 24, false, "MatMul");
      expect_bits_of_floats({dtype, 100, zeros}, 70, 40, false, "Gemm");
    }
}

void test_random_shapes(void **) {
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    const auto k = static_cast<std::int64_t>(20 + random() % 300), n = static_cast<std::int64_t>(60 + random() % 200);
    const Stored stored{random() % 2 ? QTN_INT4 : QTN_UINT8, 8 * static_cast<std::int64_t>(random() % 6),
                        static_cast<Zeros>(random() % 3)};
    expect_bits_of_floats(stored, k, n, random() % 2 == 0, "Gemm");
  }
}

/// What kernels have no form for, or gain nothing from, becomes floats.
void test_what_becomes_floats(void **) {
  const struct {
    Stored stored;
    std::int64_t k, n;
    int depth;
  } cases[] = {{{QTN_INT4, 6}, 60, 40, 0},                // blocks that end within a word
               {{QTN_INT8, 16}, 60, 40, 1},               // blocks of columns
               {{QTN_INT8, 0}, 60, 40, 1},                // a scale for each k
               {{QTN_INT8, 0, Zeros::none, 1e-32}, 60, 40, 0},  // scales that kernels do not hold
               {{QTN_INT8, 0}, 20, 20, 0}};               // hardly any
  for (const auto &c : cases) {
    const Tensor weight = matrix({c.k, c.n}, c.stored, c.depth, 3), x = random({3, c.k}, -1, 1, 4);
    const graph::Graph floats = product(weight, {3, c.k}, "MatMul", false, c.n), g = with_weight(floats, weight);
    assert_false(stays(g, x));
    const Tensor *inputs[] = {&x};
    expect_equal(runtime::Session(g, {}).run(inputs)[0], runtime::Session(floats, {}).run(inputs)[0], "floats");
  }
}

/// Sessions hold the integers and their scales, and nothing else, whatever lengths they have met. Complements have no
/// zero points there.
void test_memory(void **) {
  if (!cpu_has(Isa::avx2)) return;
  for (const Zeros zeros : {Zeros::none, Zeros::complements}) {
    const Tensor weight = matrix({256, 512}, {QTN_INT4, 32, zeros}, 0, 1);
    const graph::Graph g = with_weight(product(weight, {-1, 256}, "Gemm", false, 512), weight);
    const runtime::Session session(g, {runtime::Engine::native, 1});
    std::size_t bytes = 0;
    for (const std::int64_t rows : {1, 64, 7})
      bytes = profile_of(session, random({rows, 256}, -1, 1, 2)).at("weights_bytes");
    assert_int_equal(bytes, 512 * (256 / 2 + 256 / 32 * sizeof(float) + sizeof(float)));
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::test_bits), cmocka_unit_test(qtn::test::test_random_shapes),
                              cmocka_unit_test(qtn::test::test_what_becomes_floats),
                              cmocka_unit_test(qtn::test::test_memory)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
