// SPDX-License-Identifier: Apache-2.0
// Quantization without data on the native engine: the bits of the reference engine, and steps on integers.
#include <cmath>

#include "../sums.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/weights_only.hpp"
#include "runtime/support.hpp"

namespace qtn::test {
namespace {

std::vector<std::string> steps_in_float(const runtime::Session &session, const Tensor &x) {
  const Tensor *inputs[] = {&x};
  const auto profile = nlohmann::json::parse(session.profile(inputs));
  std::vector<std::string> steps;
  for (const auto &node : profile.at("nodes"))
    if (node.at("dtype") != "int8") steps.push_back(node.at("op"));
  return steps;
}

/// Every instruction set, one and two threads; x is of any batch.
void expect_native_is_reference(const graph::Graph &g, const Tensor &x, const std::vector<std::string> &in_float,
                                bool products_of_floats = false) {
  const Tensor *inputs[] = {&x};
  const std::vector<Tensor> want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs);
  each_isa([&](const std::string &name) {
    for (const int threads : {1, 2}) {
      const runtime::Session session(g, {runtime::Engine::native, threads});
      const std::string what = cat(name, ", ", threads, " threads, ", to_string(x.shape()));
      const std::vector<Tensor> got = session.run(inputs);
      for (std::size_t o = 0; o < want.size(); ++o) {
        if (!products_of_floats)
          expect_equal(got[o], want[o], what);
        else if (!equal_but_for_sums(got[o], want[o]))
          fail_test(what, ": output ", o, " is another");
      }
      if (steps_in_float(session, x) != in_float)
        fail_test(what, ": in float are ", nlohmann::json(steps_in_float(session, x)).dump());
    }
  });
}

graph::Graph network(std::int64_t in, std::int64_t hidden, std::int64_t out) {
  GraphBuilder b;
  b.input("x", {-1, in}).constant("w", random({in, hidden}, -1, 1, 1)).constant("b", random({hidden}, -1, 1, 2));
  b.node("MatMul", "first", {"x", "w"}, {"m"})
      .node("Add", "bias", {"m", "b"}, {"h"})
      .node("Relu", "relu", {"h"}, {"r"});
  b.constant("v", random({out, hidden}, -1, 1, 3));
  b.node("Gemm", "second", {"r", "v"}, {"y"}, attrs({{"transB", std::int64_t{1}}}));
  return b.build({"y"});
}

void test_products(void **) {
  const struct { std::int64_t in, hidden, out; } sizes[] = {{1, 1, 1}, {67, 33, 5}, {300, 1030, 12}};
  for (const auto &[in, hidden, out] : sizes)
    for (const std::string recipe : {"onnx", "onnx by row", "fbgemm", "qnnpack"}) {
      const auto granularity = recipe == "onnx by row" ? ops::Granularity::row : ops::Granularity::tensor;
      const graph::Graph g = quant::quantize_dynamic(
          network(in, hidden, out), quant::Config(recipe.substr(0, recipe.find(' '))), {.granularity = granularity});
      for (const std::int64_t rows : {1, 4, 37}) expect_native_is_reference(g, random({rows, in}, -1, 2, 9), {});
      expect_native_is_reference(g, random({3, in}, -1e-6f, 1e-6f, 8), {});
    }
}

/// Rows do not know of each other: a batch has the bits of its rows alone, and a large row changes no other.
void test_rows(void **) {
  const graph::Graph g = quant::quantize_dynamic(network(67, 33, 5), quant::Config("onnx"), {});
  Tensor x = random({21, 67}, -1, 2, 9);
  for (std::int64_t i = 0; i < 67; ++i) {
    x.as<float>()[i] *= 1e30f;
    x.as<float>()[67 + i] *= 1e-30f;
    x.as<float>()[2 * 67 + i] = 0;
    x.as<float>()[3 * 67 + i] *= 1e-44f;
  }
  expect_native_is_reference(g, x, {});
  const runtime::Session session(g, {});
  const Tensor *all[] = {&x};
  const Tensor together = session.run(all)[0];
  for (std::int64_t i = 0; i < 21; ++i) {
    const Tensor row = x.slice(0, i, i + 1, 1).to_contiguous();
    const Tensor *one[] = {&row};
    expect_equal(together.slice(0, i, i + 1, 1).to_contiguous(), session.run(one)[0], cat("row ", i));
  }
}

/// More elements than one task finds the range of, which is seen by the last of them.
void test_wide_range(void **) {
  GraphBuilder b;
  b.input("x", {1000, 300}).constant("w", random({300, 4}, -1, 1, 1)).node("MatMul", "product", {"x", "w"}, {"y"});
  const graph::Graph float_graph = b.build({"y"});
  const graph::Graph g =
      quant::quantize_dynamic(float_graph, quant::Config("onnx"), {.granularity = ops::Granularity::tensor});
  Tensor x = random({1000, 300}, -1, 1, 4);
  x.as<float>()[x.count() - 1] = 40;
  expect_native_is_reference(g, x, {});
  const Tensor *inputs[] = {&x};
  const Tensor want = runtime::Session(float_graph, {}).run(inputs)[0], got = runtime::Session(g, {}).run(inputs)[0];
  for (std::int64_t i = 0; i < want.count(); ++i)
    if (std::abs(got.as<float>()[i] - want.as<float>()[i]) > 5)
      fail_test("element ", i, " is ", got.as<float>()[i], ", want about ", want.as<float>()[i]);
}

/// All zeros; no rows; NaN.
void test_ranges(void **) {
  const graph::Graph g = quant::quantize_dynamic(network(300, 8, 3), quant::Config("onnx"), {});
  expect_native_is_reference(g, random({3, 300}, 0, 0, 1), {});
  expect_native_is_reference(g, Tensor(QTN_FLOAT32, {0, 300}), {});
  for (const runtime::Engine engine : {runtime::Engine::reference, runtime::Engine::native}) {
    Tensor bad = random({2, 300}, -1, 1, 5);
    bad.as<float>()[7] = NAN;
    const Tensor *inputs[] = {&bad};
    expect_error(QTN_EINVAL, "DynamicQuantizeMatMul: x holds NaN", [&] {
      runtime::Session(g, {engine, 1}).run(inputs);
    });
  }
}

/// Weights of both types with zero points, one scale or many, three axes, clamps, and one x for two products.
void test_forms(void **) {
  for (const qdtype dtype : {QTN_INT8, QTN_UINT8})
    for (const bool zeros : {false, true})
      for (const std::int64_t scales : {1, 5}) {
        GraphBuilder b;
        std::mt19937 generator(7);
        const auto integers = [&](const Shape &shape) {
          Tensor t(dtype, shape);
          for (std::int64_t i = 0; i < t.count(); ++i) t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(generator());
          return t;
        };
        b.input("x", {-1, 3, 70}).constant("w", integers({70, 5})).constant("s", random({scales}, 0.1f, 1, 3));
        if (zeros) b.constant("z", integers({5}));
        b.constant("b", random({5}, -9, 9, 4)).constant("low", Tensor::scalar(-1)).constant("high", Tensor::scalar(2));
        b.node("DynamicQuantizeMatMul", "a", {"x", "w", "s", zeros ? "z" : "", "b"}, {"u"});
        b.node("DynamicQuantizeMatMul", "b", {"x", "w", "s"}, {"v"});
        b.node("Clip", "clip", {"v", "low", "high"}, {"c"});
        expect_native_is_reference(b.build({"u", "c"}), random({2, 3, 70}, -3, 1, 5), {});
      }
}

struct DynamicConv {
  Shape x, w;
  Attrs attributes = {};
  qdtype dtype = QTN_INT8;
  std::int64_t zeros = 0, scales = 1;  ///< how many
  bool bias = false;

  void add(GraphBuilder &b, const std::string &name) const {
    std::mt19937 generator(7);
    const auto integers = [&](const Shape &shape) {
      Tensor t(dtype, shape);
      for (std::int64_t i = 0; i < t.count(); ++i) t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(generator());
      return t;
    };
    b.constant(name + ".w", integers(w)).constant(name + ".s", random({scales}, 0.1f, 1, 3));
    if (zeros) b.constant(name + ".z", integers({zeros}));
    if (bias) b.constant(name + ".b", random({w[0]}, -9, 9, 4));
    b.node("DynamicQuantizeConv", name,
           {"x", name + ".w", name + ".s", zeros ? name + ".z" : "", bias ? name + ".b" : ""}, {name + ".y"},
           attributes);
  }
};

Attrs window(const std::vector<std::int64_t> &pads, const std::vector<std::int64_t> &strides = {},
             std::int64_t groups = 1, const std::vector<std::int64_t> &dilations = {}) {
  Attrs found;
  if (!pads.empty()) found.set("pads", pads);
  if (!strides.empty()) found.set("strides", strides);
  if (!dilations.empty()) found.set("dilations", dilations);
  if (groups != 1) found.set("group", groups);
  return found;
}

/// Lines, images and volumes; windows in place, in strips and gathered, of one channel, of groups; weights of both types
/// with and without zero points; borders that differ from side to side, and clamps.
void test_convolutions(void **) {
  const Attrs square = window({1, 1, 1, 1});
  const DynamicConv all[] = {
      {{2, 8, 9, 7}, {5, 8, 1, 1}},
      {{2, 8, 9, 7}, {5, 8, 1, 1}, {}, QTN_UINT8, 1, 1, true},
      {{1, 3, 20, 21}, {40, 3, 7, 7}, window({3, 3, 3, 3}, {2, 2}), QTN_INT8, 0, 40, true},
      {{2, 16, 17, 19}, {33, 16, 3, 3}, square, QTN_INT8, 0, 33, true},
      {{2, 16, 17, 19}, {33, 16, 3, 3}, square, QTN_UINT8, 1, 1, true},
      {{1, 6, 12, 9}, {4, 6, 3, 2}, window({2, 0, 1, 1}, {1, 2}, 1, {2, 1}), QTN_UINT8, 4, 4},
      {{1, 6, 12, 9}, {4, 6, 3, 2}, window({0, 1, 1, 0}), QTN_INT8, 4, 1, true},
      {{1, 12, 11, 10}, {8, 3, 3, 3}, window({1, 1, 1, 1}, {}, 4), QTN_INT8, 0, 8, true},
      {{1, 12, 11, 10}, {8, 3, 3, 3}, window({1, 1, 1, 1}, {}, 4), QTN_UINT8, 8, 8},
      {{1, 12, 11, 10}, {4, 3, 3, 3}, window({1, 1, 1, 1}, {}, 4), QTN_INT8, 0, 4, true},
      {{2, 300, 15, 13}, {300, 1, 3, 3}, window({1, 1, 1, 1}, {}, 300), QTN_INT8, 0, 300, true},
      {{1, 37, 16, 13}, {37, 1, 5, 5}, window({2, 1, 2, 3}, {2, 2}, 37)},
      {{1, 20, 16, 13}, {20, 1, 3, 3}, window({2, 2, 2, 2}, {}, 20, {2, 2}), QTN_INT8, 0, 20, true},
      {{1, 6, 9, 8}, {12, 1, 3, 3}, window({1, 1, 1, 1}, {}, 6), QTN_INT8, 0, 12, true},
      {{2, 5, 40}, {7, 5, 4}, window({3, 0}), QTN_INT8, 0, 7, true},
      {{1, 9, 40}, {9, 1, 5}, window({4, 0}, {}, 9), QTN_INT8, 0, 9, true},
      {{1, 4, 30, 1}, {6, 4, 5, 1}, window({2, 0, 2, 0}), QTN_UINT8, 1},
      {{1, 4, 5, 6, 7}, {6, 4, 3, 3, 3}, window({1, 0, 1, 1, 2, 1}), QTN_INT8, 0, 6, true},
      {{1, 4, 5, 6, 7}, {4, 1, 3, 3, 3}, window({1, 1, 1, 1, 1, 1}, {}, 4), QTN_INT8, 0, 4, true},
  };
  for (const DynamicConv &conv : all)
    for (const bool relu : {false, true}) {
      GraphBuilder b;
      b.input("x", conv.x);
      conv.add(b, "conv");
      if (relu) b.node("Relu", "relu", {"conv.y"}, {"r"});
      Tensor x = random(conv.x, -1, 2, 5);
      expect_native_is_reference(b.build({relu ? "r" : "conv.y"}), x, {"Copy", "Copy"});
    }
}

/// Convolutions that read one value share its integers where they have the same borders, numerics are those of the node.
void test_convolutions_of_one_value(void **) {
  GraphBuilder b;
  b.input("x", {1, 8, 9, 7});
  const DynamicConv first{{}, {5, 8, 3, 3}, window({1, 1, 1, 1})}, second{{}, {6, 8, 3, 3}, window({1, 1, 1, 1})};
  const DynamicConv inner{{}, {5, 8, 3, 3}}, torch{{}, {5, 8, 1, 1}, attrs({{"numerics", "fbgemm"}})};
  first.add(b, "first");
  second.add(b, "second");
  inner.add(b, "inner");
  torch.add(b, "torch");
  const graph::Graph g = b.build({"first.y", "second.y", "inner.y", "torch.y"});
  const Tensor x = random({1, 8, 9, 7}, -1, 2, 5), *inputs[] = {&x};
  expect_native_is_reference(g, x, {"Copy", "Copy", "Copy", "Copy", "Copy"});
  const auto profile = nlohmann::json::parse(runtime::Session(g, {}).profile(inputs));
  const auto is_quantize = [](const auto &node) { return node.at("op") == "DynamicQuantizeLinear"; };
  assert_int_equal(std::ranges::count_if(profile.at("nodes"), is_quantize), 3);
}

/// A node of volumes that meets several planes and one, in either order, in one session.
void test_volumes_of_one_plane(void **) {
  const DynamicConv conv{{}, {8, 1, 1, 3, 3}, window({}, {}, 8), QTN_INT8, 0, 8, true};
  GraphBuilder b;
  b.input("x", {1, 8, -1, 9, 3});
  conv.add(b, "conv");
  const graph::Graph g = b.build({"conv.y"});
  for (const bool one_first : {false, true}) {
    const runtime::Session session(g, {runtime::Engine::native, 1});
    for (const bool one : {one_first, !one_first}) {
      const Tensor x = random({1, 8, one ? 1 : 4, 9, 3}, -1, 2, 5), *inputs[] = {&x};
      const Tensor want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs)[0];
      expect_equal(session.run(inputs)[0], want, cat("planes: ", x.dim(2), one_first ? ", one first" : ""));
    }
  }
}

/// Padding that no window reads takes no memory: here that would be eight gigabytes.
void test_unread_padding(void **) {
  GraphBuilder b;
  b.input("x", {1, 8, 1, 1, 1});
  DynamicConv{{}, {3, 8, 1, 1, 1}, window({0, 0, 0, 1000, 1000, 1000}, {1024, 1024, 1024})}.add(b, "conv");
  expect_native_is_reference(b.build({"conv.y"}), random({1, 8, 1, 1, 1}, -1, 2, 5), {});
}

void test_grids_are_found_once(void **) {
  GraphBuilder b;
  b.input("x", {2, 8});
  for (const char *name : {"q", "k", "v"}) {
    b.constant(cat(name, ".w"), random({8, 4}, -1, 1, 1))
        .node("MatMul", name, {"x", cat(name, ".w")}, {cat(name, ".y")});
  }
  quant::Config config("onnx");
  const graph::Graph float_graph = b.build({"q.y", "k.y", "v.y"});
  const auto steps = [&] {
    const graph::Graph g = quant::quantize_dynamic(float_graph, config, {});
    const Tensor x = random({2, 8}, -1, 1, 2);
    expect_native_is_reference(g, x, {});
    const Tensor *inputs[] = {&x};
    return nlohmann::json::parse(runtime::Session(g, {}).profile(inputs)).at("nodes").size();
  };
  assert_int_equal(steps(), 4);
  // Another node's numerics are another grid.
  const Attrs torch = attrs({{"numerics", "fbgemm"}});
  config.set("node:k", &torch);
  assert_int_equal(steps(), 5);
}

/// Weights of more than a megabyte are read in blocks of columns, each of which meets several blocks of rows.
void test_large_weights(void **) {
  GraphBuilder b;
  b.input("x", {500, 640}).constant("w", random({640, 1700}, -1, 1, 1)).node("MatMul", "a", {"x", "w"}, {"y"});
  const graph::Graph g = quant::quantize_dynamic(b.build({"y"}), quant::Config("onnx"), {});
  expect_native_is_reference(g, random({500, 640}, -1, 1, 2), {});
}

/// Sums that may leave int32 run by the definition, and kernels make those that are nearly as large.
void test_deep_products(void **) {
  for (const auto &[depth, weight] : {std::pair<std::int64_t, std::int8_t>{66311, 127}, {66312, 127}, {400000, -21}}) {
    GraphBuilder b;
    Tensor w(QTN_INT8, {depth, 2});
    std::fill_n(w.as<std::int8_t>(), w.count(), weight);
    b.input("x", {1, depth}).constant("w", w).constant("s", Tensor::scalar(1));
    b.node("DynamicQuantizeMatMul", "a", {"x", "w", "s"}, {"y"});
    std::vector<std::string> in_float;
    if (depth == 66312) in_float.emplace_back("DynamicQuantizeMatMul");
    expect_native_is_reference(b.build({"y"}), random({1, depth}, 1, 1, 1), in_float);
  }
}

/// Small weights are turned into floats once for a session, and the rest is what it was.
void test_weights_only(void **) {
  GraphBuilder b;
  b.input("x", {-1, 3, 8, 8});
  add_conv(b, "conv", "x", "c", {5, 3, 3, 3}, {});
  b.node("Flatten", "flatten", {"c"}, {"f"}).constant("w", random({180, 7}, -1, 1, 3));
  b.node("MatMul", "product", {"f", "w"}, {"y"});
  const graph::Graph float_graph = b.build({"y"});
  for (const quant::WeightsOnly grid : {quant::WeightsOnly{QTN_INT8, 0}, {QTN_INT4, 32}}) {
    const graph::Graph g = quant::quantize_weights(float_graph, grid);
    const Tensor x = random({2, 3, 8, 8}, -1, 1, 6);
    const Tensor *inputs[] = {&x};
    expect_native_is_reference(g, x, {"Copy", "Conv", "Copy", "MatMul"}, true);
    const auto profile = nlohmann::json::parse(runtime::Session(g, {}).profile(inputs));
    assert_int_equal(profile.at("nodes").size(), 4);
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_products),
      cmocka_unit_test(qtn::test::test_rows),
      cmocka_unit_test(qtn::test::test_wide_range),
      cmocka_unit_test(qtn::test::test_ranges),
      cmocka_unit_test(qtn::test::test_forms),
      cmocka_unit_test(qtn::test::test_grids_are_found_once),
      cmocka_unit_test(qtn::test::test_large_weights),
      cmocka_unit_test(qtn::test::test_deep_products),
      cmocka_unit_test(qtn::test::test_weights_only),
      cmocka_unit_test(qtn::test::test_convolutions),
      cmocka_unit_test(qtn::test::test_convolutions_of_one_value),
      cmocka_unit_test(qtn::test::test_volumes_of_one_plane),
      cmocka_unit_test(qtn::test::test_unread_padding),
  };
  return cmocka_run_group_tests_name("runtime/dynamic", tests, nullptr, nullptr);
}
