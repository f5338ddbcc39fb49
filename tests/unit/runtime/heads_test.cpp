// SPDX-License-Identifier: Apache-2.0
// Nodes that attend: what sessions make of them is what the operators' definitions say, in one step, with the same bits
// for any number of threads and every instruction set that multiplies floats alike.
#include "../sums.hpp"
#include "ops/support.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A node, its inputs as constants where they are no floats, and whether it is run by a step that attends.
class Case {
 public:
  explicit Case(unsigned seed) : generator_(seed) {}

  std::int64_t any(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(generator_);
  }
  bool maybe() { return any(0, 1) != 0; }

  void floats(const Shape &shape) {
    const std::string name = cat("x", names_.size());
    graph_.input(name, shape);
    inputs_.push_back(random(shape, -1, 1, static_cast<unsigned>(any(0, 1 << 20))));
    names_.push_back(name);
  }
  void constant(const Tensor &t) {
    const std::string name = cat("c", names_.size());
    graph_.constant(name, t);
    names_.push_back(name);
  }
  void absent() { names_.emplace_back(); }

  template <class T>
  void ints(qdtype dtype, const Shape &shape, std::int64_t least, std::int64_t most) {
    Tensor t(dtype, shape);
    for (std::int64_t i = 0; i < t.count(); ++i) t.as<T>()[i] = static_cast<T>(any(least, most));
    constant(t);
  }

  /// A float mask that hides some keys, in some rows all of them.
  void hiding_floats(const Shape &shape) {
    Tensor t = random(shape, -1, 1, static_cast<unsigned>(any(0, 1 << 20)));
    for (std::int64_t i = 0; i < t.count(); ++i) {
      if (i % shape.back() == 0) hides_all_ = any(0, 4) == 0;
      if (hides_all_ || any(0, 4) == 0) t.as<float>()[i] = -kInfinity;
    }
    constant(t);
  }

  void check(const std::string &op, const Attrs &attributes, std::size_t outputs, const std::string &what) {
    std::vector<std::string> made;
    for (std::size_t o = 0; o < outputs; ++o) made.push_back(cat("y", o));
    graph_.node(op, "node", names_, made, attributes);
    const graph::Graph g = graph_.build(made);
    std::vector<const Tensor *> pointers;
    for (const Tensor &t : inputs_) pointers.push_back(&t);
    const std::vector<Tensor> want = runtime::Session(g, {runtime::Engine::reference, 1}).run(pointers);
    each_isa([&](const std::string &isa) {
      std::vector<Tensor> first;
      for (const int threads : {1, 3}) {
        const runtime::Session session(g, {runtime::Engine::native, threads});
        const std::vector<Tensor> got = session.run(pointers);
        for (std::size_t o = 0; o < outputs; ++o) {
          const std::string where = cat(what, ", ", isa, ", ", threads, " threads, output ", o);
          if (!equal_but_for_sums(got[o], want[o], 0, 4e-6)) fail_test(where, " is not the definition");
          if (threads > 1) expect_equal(got[o], first[o], where);
        }
        first = got;
        const auto profile = nlohmann::json::parse(session.profile(pointers));
        std::size_t steps = 0;
        for (const auto &node : profile.at("nodes"))
          steps += node.at("op") == "Attention" && node.at("kernel").get<std::string>().starts_with("real_");
        assert_int_equal(steps, 1);
      }
    });
  }

 private:
  std::mt19937 generator_;
  GraphBuilder graph_;
  std::vector<Tensor> inputs_;
  std::vector<std::string> names_;
  bool hides_all_ = false;
};

/// Leading axes of a mask, which repeats over some of [batch, heads, queries].
Shape some_axes(Case &c, const Shape &scores, std::int64_t columns) {
  Shape shape{columns};
  const std::int64_t axes = c.any(0, 3);
  for (std::int64_t i = 0; i < axes; ++i) shape.insert(0, c.maybe() ? scores[static_cast<std::size_t>(2 - i)] : 1);
  return shape;
}

void check_attention(unsigned seed) {
  Case c(seed);
  const std::int64_t batch = c.any(1, 2), kv_heads = c.any(1, 2), heads = kv_heads * c.any(1, 3),
                     queries = c.any(1, 40), keys = c.any(1, 70), features = c.any(1, 20), values = c.any(1, 20),
                     past = c.any(0, 2) * c.any(0, 30);
  const bool flat = c.maybe(), cached = past > 0 || c.maybe(), lengths = !cached && c.any(0, 3) == 0;
  Attrs a;
  const auto operand = [&](std::int64_t own_heads, std::int64_t places, std::int64_t size) {
    c.floats(flat ? Shape{batch, places, own_heads * size} : Shape{batch, own_heads, places, size});
  };
  operand(heads, queries, features), operand(kv_heads, keys, features), operand(kv_heads, keys, values);
  if (flat) a.set("q_num_heads", heads), a.set("kv_num_heads", kv_heads);
  const std::int64_t total = past + keys;
  const Shape mask = some_axes(c, {batch, heads, queries}, c.any(0, 3) == 0 ? c.any(1, total) : total);
  switch (c.any(0, 2)) {
    case 0:
      c.absent();
      break;
    case 1:
      c.hiding_floats(mask);
      break;
    default:
      c.ints<bool>(QTN_BOOL, mask, 0, 1);
  }
  if (cached && past > 0) {
    c.floats({batch, kv_heads, past, features}), c.floats({batch, kv_heads, past, values});
  } else if (lengths) {
    c.absent(), c.absent();
    c.ints<std::int64_t>(QTN_INT64, {batch}, 0, keys);
  }
  if (c.maybe()) a.set("is_causal", std::int64_t{1});
  if (c.any(0, 3) == 0) a.set("left_window_size", c.any(0, 20));
  if (c.any(0, 3) == 0) a.set("right_window_size", c.any(0, 20));
  if (c.any(0, 3) == 0) a.set("softcap", c.maybe() ? 0.5 : 3e38);
  if (c.any(0, 3) == 0) a.set("scale", 0.7);
  c.check("Attention", a, cached ? 3 : 1, cat("Attention ", seed));
}

void test_attention(void **) {
  for (unsigned seed = 0; seed < 300; ++seed) check_attention(seed);
}

void check_multi_head(unsigned seed) {
  Case c(1000 + seed);
  const std::int64_t batch = c.any(1, 3), heads = c.any(1, 3), queries = c.any(1, 20), features = c.any(1, 20),
                     values = c.any(1, 20), past = c.any(0, 1) * c.any(1, 30);
  const bool split = c.maybe(), causal = c.maybe(), cached = past > 0 || c.maybe();
  const std::int64_t keys = causal ? queries : c.any(1, 40), total = past + keys;
  Attrs a = attrs({{"num_heads", heads}});
  c.floats({batch, queries, heads * features});
  for (const std::int64_t size : {features, values})
    c.floats(split ? Shape{batch, heads, keys, size} : Shape{batch, keys, heads * size});
  c.maybe() ? c.floats({heads * (2 * features + values)}) : c.absent();
  switch (c.any(0, 5)) {
    case 0:
      c.ints<std::int32_t>(QTN_INT32, {batch}, 0, total);
      break;
    case 1:
      c.ints<std::int32_t>(QTN_INT32, {2 * batch}, 0, total);
      break;
    case 2:
      c.ints<std::int64_t>(QTN_INT64, {batch, total}, 0, 1);
      break;
    case 3:
      c.ints<std::int32_t>(QTN_INT32, {batch, queries, total}, 0, 1);
      break;
    default:
      c.absent();
  }
  c.maybe() ? c.hiding_floats({c.maybe() ? batch : 1, c.maybe() ? heads : 1, queries, total}) : c.absent();
  if (past > 0) c.floats({batch, heads, past, features}), c.floats({batch, heads, past, values});
  if (causal) a.set("unidirectional", std::int64_t{1});
  // By the default, -10000, scores lose three digits where all keys are padding.
  a.set("mask_filter_value", c.maybe() ? -3.4e38 : -5.0);
  if (c.any(0, 3) == 0) a.set("scale", 0.7);
  c.check("MultiHeadAttention", a, cached ? 3 : 1, cat("MultiHeadAttention ", seed));
}

void test_multi_head(void **) {
  for (unsigned seed = 0; seed < 300; ++seed) check_multi_head(seed);
}

void check_grouped(unsigned seed) {
  Case c(2000 + seed);
  const std::int64_t batch = c.any(1, 2), kv_heads = c.any(1, 2), heads = kv_heads * c.any(1, 3),
                     queries = c.any(1, 30), features = 2 * c.any(1, 10), past = c.any(0, 1) * c.any(1, 30);
  const bool packed = c.maybe(), rotary = c.maybe(), first = past == 0;
  const std::int64_t total = first ? queries + c.any(0, 1) : queries + c.any(0, past);
  Attrs a = attrs({{"num_heads", heads}, {"kv_num_heads", kv_heads}});
  c.floats({batch, queries, (packed ? heads + 2 * kv_heads : heads) * features});
  for (int i = 0; i < 2; ++i) packed ? c.absent() : c.floats({batch, queries, kv_heads * features});
  for (int i = 0; i < 2; ++i) first ? c.absent() : c.floats({batch, kv_heads, past, features});
  c.ints<std::int32_t>(QTN_INT32, {batch}, 0, total - 1);
  c.ints<std::int32_t>(QTN_INT32, {1}, total, total);
  if (rotary) {
    const std::int64_t turned = c.any(1, features / 2);
    for (int i = 0; i < 2; ++i) c.floats({64, turned});
    a.set("do_rotary", std::int64_t{1});
    a.set("rotary_interleaved", c.any(0, 1));
  }
  if (c.any(0, 2) == 0) a.set("local_window_size", c.any(1, 20));
  if (c.any(0, 3) == 0) a.set("softcap", c.maybe() ? 0.5 : 3e38);
  if (c.any(0, 3) == 0) a.set("scale", 0.7);
  c.check("GroupQueryAttention", a, 3, cat("GroupQueryAttention ", seed));
}

void test_grouped(void **) {
  for (unsigned seed = 0; seed < 200; ++seed) check_grouped(seed);
}

/// More scores than are kept at a time, and more queries and values than a tile has.
void test_long(void **) {
  for (const bool causal : {false, true}) {
    Case c(1);
    c.floats({1, 4, 90, 33}), c.floats({1, 2, 3000, 33}), c.floats({1, 2, 3000, 65});
    c.check("Attention", attrs({{"is_causal", std::int64_t{causal}}}), 1, cat("long, causal ", causal));
  }
}

/// The vectors of ONNX's reference and of ONNX Runtime, which the definitions meet, in sessions.
void test_golden_cases(void **) {
  for (const char *name : {"Attention", "MultiHeadAttention", "GroupQueryAttention"}) {
    const ops::OpDef &op = *ops::find_op(name);
    const nlohmann::json file = golden(cat("ops/", name, ".json"));
    for (const auto &j : file.at("cases")) {
      GraphBuilder b;
      std::vector<Tensor> inputs;
      std::vector<std::string> names, made;
      for (const auto &x : j.at("inputs")) {
        names.push_back(x.is_null() ? "" : cat("x", names.size()));
        if (x.is_null()) continue;
        const Tensor t = tensor_of(x);
        if (t.dtype() == QTN_FLOAT32)
          b.input(names.back(), t.shape()), inputs.push_back(t);
        else
          b.constant(names.back(), t);
      }
      for (std::size_t o = 0; o < j.at("outputs").size(); ++o) made.push_back(cat("y", o));
      b.node(name, "node", names, made, attrs_of(j.at("attrs"), op));
      const graph::Graph g = b.build(made);
      std::vector<const Tensor *> pointers;
      for (const Tensor &t : inputs) pointers.push_back(&t);
      const std::vector<Tensor> got = runtime::Session(g, {runtime::Engine::native, 1}).run(pointers);
      for (std::size_t o = 0; o < made.size(); ++o)
        expect_equal(got[o], tensor_of(j.at("outputs")[o]), j.at("tolerance").get<double>(),
                     cat(name, "/", j.at("name").get<std::string>()));
    }
  }
}

/// What shows its scores stays as the operator defines it.
void test_shown_scores(void **) {
  GraphBuilder b;
  b.input("q", {1, 2, 3, 4}).input("k", {1, 2, 5, 4}).input("v", {1, 2, 5, 4});
  b.node("Attention", "node", {"q", "k", "v"}, {"y", "pk", "pv", "s"});
  const graph::Graph g = b.build({"y", "s"});
  const Tensor q = random({1, 2, 3, 4}, -1, 1, 1), k = random({1, 2, 5, 4}, -1, 1, 2),
               v = random({1, 2, 5, 4}, -1, 1, 3);
  const Tensor *inputs[] = {&q, &k, &v};
  const std::vector<Tensor> want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs),
                            got = runtime::Session(g, {runtime::Engine::native, 1}).run(inputs);
  for (std::size_t o = 0; o < 2; ++o) assert_true(equal_but_for_sums(got[o], want[o]));
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_attention),    cmocka_unit_test(qtn::test::test_multi_head),
      cmocka_unit_test(qtn::test::test_grouped),      cmocka_unit_test(qtn::test::test_long),
      cmocka_unit_test(qtn::test::test_golden_cases), cmocka_unit_test(qtn::test::test_shown_scores)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
