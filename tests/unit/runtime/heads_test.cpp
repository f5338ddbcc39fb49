// SPDX-License-Identifier: Apache-2.0
// Nodes that attend: what sessions make of them is what the operators' definitions say, in one step, with the same bits
// for any number of threads and every instruction set that multiplies floats alike.
#include <array>
#include <cstring>

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

  void floats(const Shape &shape, float low = -1, float high = 1) {
    input(random(shape, low, high, static_cast<unsigned>(any(0, 1 << 20))));
  }
  void input(const Tensor &t) {
    const std::string name = cat("x", names_.size());
    graph_.input(name, t.shape(), t.dtype());
    inputs_.push_back(t);
    names_.push_back(name);
  }
  void constant(const Tensor &t) {
    const std::string name = cat("c", names_.size());
    graph_.constant(name, t);
    names_.push_back(name);
  }
  void absent() { names_.emplace_back(); }

  template <class T>
  Tensor any_ints(qdtype dtype, const Shape &shape, std::int64_t least, std::int64_t most) {
    Tensor t(dtype, shape);
    for (std::int64_t i = 0; i < t.count(); ++i) t.as<T>()[i] = static_cast<T>(any(least, most));
    return t;
  }
  template <class T>
  void ints(qdtype dtype, const Shape &shape, std::int64_t least, std::int64_t most) {
    constant(any_ints<T>(dtype, shape, least, most));
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
          const bool same = want[o].dtype() == QTN_FLOAT32 ? equal_but_for_sums(got[o], want[o], 0, 4e-6)
                                                           : equal(got[o], want[o]);
          if (!same) fail_test(where, " is not the definition");
          if (threads > 1 && !equal(got[o], first[o])) fail_test(where, " is not what one thread makes");
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

/// What is in a cache before a call.
void add_cache(Case &c, const Shape &shape, std::int64_t bits) {
  if (bits == 0) return c.floats(shape);
  Shape bytes = shape;
  if (bits == 4) bytes[3] /= 2;
  c.input(bits == 8 ? c.any_ints<std::int8_t>(QTN_INT8, bytes, -128, 127)
                    : c.any_ints<std::uint8_t>(QTN_UINT8, bytes, 0, 255));
}

/// Attributes of caches of integers.
void say_bits(Attrs &a, std::int64_t bits, bool by_channel) {
  a.set("kv_cache_bit_width", bits);
  for (const char *name : {"k_quant_type", "v_quant_type"})
    a.set(name, std::string(bits == 0 ? "NONE" : by_channel ? "PER_CHANNEL" : "PER_TENSOR"));
}

void check_grouped(unsigned seed) {
  Case c(2000 + seed);
  const std::int64_t batch = c.any(1, 2), kv_heads = c.any(1, 2), heads = kv_heads * c.any(1, 3),
                     queries = c.any(1, 2) == 1 ? 1 : c.any(1, 30), features = 2 * c.any(1, 10), window = c.any(1, 20),
                     bits = std::array{0, 0, 4, 8}[static_cast<std::size_t>(c.any(0, 3))];
  const bool slides = c.any(0, 3) == 0, packed = c.maybe(), rotary = c.maybe();
  const std::int64_t past = slides ? window + c.any(0, 1) * c.any(0, 15) : c.any(0, 1) * c.any(1, 30);
  const bool first = past == 0;
  const std::int64_t total = queries + (slides ? c.any(0, 1) * c.any(0, 33) : first ? c.any(0, 1) : c.any(0, past));
  Attrs a = attrs({{"num_heads", heads}, {"kv_num_heads", kv_heads}});
  say_bits(a, bits, c.maybe());
  c.floats({batch, queries, (packed ? heads + 2 * kv_heads : heads) * features});
  for (int i = 0; i < 2; ++i) packed ? c.absent() : c.floats({batch, queries, kv_heads * features});
  for (int i = 0; i < 2; ++i) first ? c.absent() : add_cache(c, {batch, kv_heads, past, features}, bits);
  c.ints<std::int32_t>(QTN_INT32, {batch}, 0, total - 1);
  c.ints<std::int32_t>(QTN_INT32, {1}, total, total);
  const std::int64_t turned = c.any(1, features / 2);
  for (int i = 0; i < 2; ++i) rotary ? c.floats({64, turned}) : c.absent();
  if (rotary) a.set("do_rotary", std::int64_t{1}), a.set("rotary_interleaved", c.any(0, 1));
  c.absent();
  const Shape scores{c.maybe() ? batch : 1, c.maybe() ? heads : 1, queries, total};
  !slides && c.any(0, 3) == 0 ? c.hiding_floats(scores) : c.absent();
  c.any(0, 2) == 0 ? c.floats({heads}, -3, 3) : c.absent();
  if (c.any(0, 3) == 0) a.set("smooth_softmax", std::int64_t{1});
  const Shape scales = a.get_string("k_quant_type", "") == "PER_CHANNEL" ? Shape{kv_heads, features} : Shape{1};
  for (int i = 0; i < 2 && bits != 0; ++i) c.floats(scales, 0.5f / static_cast<float>(bits * bits), 0.04f);
  if (slides) a.set("sliding_window_cache", std::int64_t{1});
  if (slides || c.any(0, 2) == 0)
    a.set("local_window_size", window);
  else if (c.any(0, 2) == 0)
    a.set("causal", std::int64_t{0});
  if (c.any(0, 3) == 0) a.set("softcap", c.maybe() ? 0.5 : 3e38);
  if (c.any(0, 3) == 0) a.set("scale", 0.7);
  c.check("GroupQueryAttention", a, 3, cat("GroupQueryAttention ", seed));
}

void test_grouped(void **) {
  for (unsigned seed = 0; seed < 500; ++seed) check_grouped(seed);
}

/// Sinks have a place of their own behind rows of scores that fill lines of cache.
void test_sinks_of_full_rows(void **) {
  constexpr std::int64_t kKeys = 32;
  for (const std::int64_t queries : {std::int64_t{1}, kKeys}) {
    Case c(1);
    c.floats({1, queries, 6 * 8}), c.absent(), c.absent();
    for (int i = 0; i < 2; ++i) c.floats({1, 1, kKeys - queries, 8});
    c.ints<std::int32_t>(QTN_INT32, {1}, kKeys - 1, kKeys - 1), c.ints<std::int32_t>(QTN_INT32, {1}, kKeys, kKeys);
    for (int i = 0; i < 4; ++i) c.absent();
    c.floats({4}, 2, 3);
    Attrs a = attrs({{"num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{1}}});
    a.set("causal", std::int64_t{0});
    c.check("GroupQueryAttention", a, 3, cat("sinks, queries ", queries));
  }
}

Tensor number(std::int64_t value) {
  const auto narrow = static_cast<std::int32_t>(value);
  return Tensor::from<std::int32_t>(QTN_INT32, {1}, std::span(&narrow, 1));
}

constexpr std::int64_t kTokens = 23, kHeads = 4, kKvHeads = 2, kFeatures = 6, kWindow = 5;

/// The caches and results of a decoder's layer, whose session keeps the caches from run to run.
class Layer {
 public:
  Layer(std::int64_t capacity, std::int64_t bits, runtime::Engine engine)
      : capacity_(capacity), bits_(bits), session_(graph(), {engine, 1}) {
    for (std::size_t i : {1, 2}) session_.bind(i, i);
  }

  /// Results of places [first, last) of x, after those before.
  Tensor run(const Tensor &x, std::int64_t first, std::int64_t last) {
    const Tensor now = x.slice(1, first, last, 1).to_contiguous();
    const Tensor lengths = number(last - 1), all = number(last), empty(dtype(), cache_shape(capacity_));
    if (empty.count() > 0) std::memset(empty.data(), 0, empty.nbytes());
    const Tensor *inputs[] = {&now, first == 0 ? &empty : nullptr, first == 0 ? &empty : nullptr, &lengths, &all};
    std::vector<Tensor> outputs(3);
    Tensor y;
    session_.run(inputs, outputs, [&](std::span<Tensor> made) {
      y = made[0].clone();
      assert_int_equal(made[1].dtype(), dtype());
      assert_true(made[1].shape() == cache_shape(capacity_ > 0 ? capacity_ : last));
    });
    return y;
  }

 private:
  qdtype dtype() const { return bits_ == 0 ? QTN_FLOAT32 : bits_ == 8 ? QTN_INT8 : QTN_UINT8; }
  Shape cache_shape(std::int64_t places) const {
    return {1, kKvHeads, places, bits_ == 4 ? kFeatures / 2 : kFeatures};
  }

  graph::Graph graph() const {
    Attrs a = attrs({{"num_heads", kHeads}, {"kv_num_heads", kKvHeads}, {"local_window_size", kWindow}});
    if (capacity_ > 0) a.set("sliding_window_cache", std::int64_t{1});
    say_bits(a, bits_, false);
    GraphBuilder b;
    b.input("x", {1, -1, (kHeads + 2 * kKvHeads) * kFeatures});
    for (const char *name : {"k", "v"}) b.input(name, cache_shape(capacity_ > 0 ? capacity_ : -1), dtype());
    b.input("lengths", {1}, QTN_INT32).input("all", {1}, QTN_INT32);
    b.constant("sink", floats({kHeads}, {0.5f, -1, 0, 2})).constant("scale", floats({1}, {bits_ == 8 ? 0.01f : 0.2f}));
    std::vector<std::string> inputs{"x", "", "", "k", "v", "lengths", "all", "", "", "", "", "sink"};
    if (bits_ != 0) inputs.insert(inputs.end(), {"scale", "scale"});
    b.node("GroupQueryAttention", "node", inputs, {"y", "next_k", "next_v"}, a);
    return b.build({"y", "next_k", "next_v"});
  }

  std::int64_t capacity_, bits_;
  runtime::Session session_;
};

/// Caches say the same of a sequence in whatever steps it came, and however much of it they hold.
void test_steps(void **) {
  const Tensor x = random({1, kTokens, (kHeads + 2 * kKvHeads) * kFeatures}, -1, 1, 1);
  for (const std::int64_t bits : {0, 4, 8}) {
    const Tensor want = Layer(0, bits, runtime::Engine::reference).run(x, 0, kTokens);
    for (const std::int64_t capacity : {std::int64_t{0}, kWindow, kWindow + 1, kWindow + 4, kTokens})
      for (const runtime::Engine engine : {runtime::Engine::reference, runtime::Engine::native})
        for (const std::int64_t step : {1, 2, 9}) {
          Layer layer(capacity, bits, engine);
          for (std::int64_t first = 0; first < kTokens; first += step) {
            const std::int64_t last = std::min(first + step, kTokens);
            expect_equal(layer.run(x, first, last), want.slice(1, first, last, 1).to_contiguous(), 1e-6,
                         cat(bits, " bits, capacity ", capacity, ", steps of ", step, " at ", first));
          }
        }
  }
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
  const Tensor q = random({1, 2, 3, 4}, -1, 1, 1), k = random({1, 2, 5, 4}, -1, 1, 2),
               v = random({1, 2, 5, 4}, -1, 1, 3), all = random({1, 5, 24}, -1, 1, 4),
               bias = random({1, 1, 5, 5}, -1, 1, 5);
  GraphBuilder b;
  b.input("q", q.shape()).input("k", k.shape()).input("v", v.shape()).input("all", all.shape());
  b.node("Attention", "node", {"q", "k", "v"}, {"y", "pk", "pv", "s"});
  b.constant("last", number(4)).constant("total", number(5));
  const Attrs heads = attrs({{"num_heads", std::int64_t{2}}, {"kv_num_heads", std::int64_t{2}}});
  Attrs shows = heads, slides = heads;
  shows.set("qk_output", std::int64_t{1});
  slides.set("sliding_window_cache", std::int64_t{1}), slides.set("local_window_size", std::int64_t{2});
  b.node("GroupQueryAttention", "shows", {"all", "", "", "", "", "last", "total"}, {"ys", "sk", "sv", "ss"}, shows);
  // Columns of what is added are not those of a sliding cache.
  b.constant("past", random({1, 2, 3, 4}, -1, 1, 6)).input("bias", bias.shape());
  b.node("GroupQueryAttention", "slides", {"all", "", "", "past", "past", "last", "total", "", "", "", "bias"},
         {"yw", "wk", "wv"}, slides);
  const std::vector<std::string> made{"y", "s", "ys", "ss", "yw", "wk"};
  const graph::Graph g = b.build(made);
  const Tensor *inputs[] = {&q, &k, &v, &all, &bias};
  const std::vector<Tensor> want = runtime::Session(g, {runtime::Engine::reference, 1}).run(inputs),
                            got = runtime::Session(g, {runtime::Engine::native, 1}).run(inputs);
  for (std::size_t o = 0; o < made.size(); ++o) assert_true(equal_but_for_sums(got[o], want[o]));
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_attention),    cmocka_unit_test(qtn::test::test_multi_head),
      cmocka_unit_test(qtn::test::test_grouped),      cmocka_unit_test(qtn::test::test_sinks_of_full_rows),
      cmocka_unit_test(qtn::test::test_steps),        cmocka_unit_test(qtn::test::test_long),
      cmocka_unit_test(qtn::test::test_golden_cases), cmocka_unit_test(qtn::test::test_shown_scores)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
