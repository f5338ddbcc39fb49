// SPDX-License-Identifier: Apache-2.0
// Attention, in the forms that exporters give it, as one step: the bits are those of the single steps, which run where a
// value in the middle is an output, too.
#include "../sums.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Term {
  const char *op;
  Shape shape;
  bool scores_first = true;
  float value = 0;                                                    ///< of a single number, in place of a random one
  float (*of_place)(std::int64_t query, std::int64_t key) = nullptr;  ///< likewise, of a matrix
};

/// Heads of queries [B, M, H, D], keys [B, T, H, D] and values [B, T, H, E], exchanged as files do it.
struct Formula {
  std::int64_t batch = 2, heads = 3, queries = 5, keys = 7, features = 4, values = 6;
  std::vector<Term> terms{};
  bool transposed_after = true, clamped = false;
  bool integer = false, centered = false;  ///< products by DynamicMatMul
  std::int64_t past = 0;                   ///< of the keys, which come as an input of their own, by head
  std::int64_t sharing = 0;                ///< how often heads of keys and values are repeated for those of queries
  Term of_keys{nullptr, {}}, of_queries{nullptr, {}};  ///< what happens to them before they meet
  bool turned_last = false;                            ///< keys are turned after that, not before
  bool guarded = false;                                ///< shares that are no numbers become zeros
  bool rounds_otherwise = false;                       ///< than the single steps, as one factor for two does
  std::size_t leaves = 0;                              ///< steps beside the one of attention

  std::int64_t key_heads() const { return heads / std::max<std::int64_t>(sharing, 1); }

  graph::Graph build(bool shown) const {
    GraphBuilder b;
    b.input("q", {batch, queries, heads, features}).input("k", {batch, keys - past, key_heads(), features});
    b.input("v", {batch, keys - past, key_heads(), values});
    b.node("Transpose", "tq", {"q"}, {"qh"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
    const std::string q = of_queries.op ? add_change(b, of_queries, "qh") : "qh";
    std::string k = "kh", v = "vh";
    if (past > 0 || sharing > 0 || of_keys.op) {
      b.node("Transpose", "tk", {"k"}, {"kn"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
      b.node("Transpose", "tv", {"v"}, {"vn"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
      k = "kn", v = "vn";
      if (past > 0) {
        b.input("kp", {batch, key_heads(), past, features}).input("vp", {batch, key_heads(), past, values});
        b.node("Concat", "jk", {"kp", "kn"}, {"kc"}, attrs({{"axis", std::int64_t{2}}}));
        b.node("Concat", "jv", {"vp", "vn"}, {"vc"}, attrs({{"axis", std::int64_t{-2}}}));
        k = "kc", v = "vc";
      }
      if (sharing > 0) k = repeated(b, k, features), v = repeated(b, v, values);
      const auto turn = [&] {
        b.node("Transpose", "turn", {k}, {"turned"}, attrs({{"perm", Ints{0, 1, 3, 2}}}));
        k = "turned";
      };
      if (!turned_last) turn();
      if (of_keys.op) k = add_change(b, of_keys, k);
      if (turned_last) turn();
    } else {
      b.node("Transpose", "tk", {"k"}, {"kh"}, attrs({{"perm", Ints{0, 2, 3, 1}}}));
      b.node("Transpose", "tv", {"v"}, {"vh"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
    }
    const char *product = integer ? "DynamicMatMul" : "MatMul";
    b.node(product, "scores", {q, k}, {"s0"}, centered ? attrs({{"centered", std::int64_t{1}}}) : Attrs());
    for (std::size_t i = 0; i < terms.size(); ++i) add_term(b, i);
    const std::string last = cat("s", terms.size());
    b.node("Softmax", "softmax", {last}, {"p"}, attrs({{"axis", std::int64_t{-1}}}));
    if (guarded)
      b.constant("nothing", Tensor::scalar(0.0f))
          .node("IsNaN", "test", {"p"}, {"none"})
          .node("Where", "guard", {"none", "nothing", "p"}, {"shares"});
    b.node(product, "mean", {guarded ? "shares" : "p", v}, {"y"});
    std::vector<std::string> outputs{"y"};
    if (clamped) b.node("Relu", "relu", {"y"}, {"c"}), outputs[0] = "c";
    if (transposed_after) {
      b.node("Transpose", "ty", {outputs[0]}, {"t"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
      b.constant("flat", Tensor::from<std::int64_t>(QTN_INT64, {3}, Ints{batch, queries, heads * values}));
      b.node("Reshape", "join", {"t", "flat"}, {"joined"});
      outputs[0] = "joined";
    }
    if (shown) outputs.push_back(last);
    if (sharing > 0) outputs.push_back(past > 0 ? "kc4" : "kn4");  // for which no run reads keys
    return b.build(outputs);
  }

  std::string repeated(GraphBuilder &b, const std::string &x, std::int64_t columns) const {
    b.constant("behind heads", Tensor::from_ints(Ints{2}));
    b.constant("each " + x, Tensor::from_ints(Ints{1, 1, sharing, 1, 1}));
    b.constant("all " + x, Tensor::from_ints(Ints{0, heads, -1, columns}));
    b.node("Unsqueeze", "apart " + x, {x, "behind heads"}, {x + "1"});
    b.node("Expand", "repeat " + x, {x + "1", "each " + x}, {x + "2"});
    b.node("Reshape", "join " + x, {x + "2", "all " + x}, {x + "3"}).node("Shape", "ask " + x, {x + "3"}, {x + "4"});
    return x + "3";
  }

  static std::string add_change(GraphBuilder &b, const Term &term, const std::string &x) {
    const std::string by = "by " + x, y = "changed " + x;
    b.constant(by, Tensor::scalar(term.value));
    b.node(term.op, "change " + x, term.scores_first ? std::vector{x, by} : std::vector{by, x}, {y});
    return y;
  }

  void add_term(GraphBuilder &b, std::size_t i) const {
    const Term &term = terms[i];
    const std::string s = cat("s", i), other = cat("other", i), y = cat("s", i + 1), op = term.op;
    const auto seed = static_cast<unsigned>(i + 40);
    if (op == "Where") {
      Tensor chosen(QTN_BOOL, term.shape);
      for (std::int64_t j = 0; j < chosen.count(); ++j)
        chosen.as<bool>()[j] = term.of_place ? term.of_place(j / keys % queries, j % keys) != 0 : j * 7 % 3 != 0;
      b.constant(other, chosen).constant(cat("filler", i), Tensor::scalar(i % 2 ? -kInfinity : -3e38f));
      b.node("Where", cat("term", i),
             term.scores_first ? std::vector<std::string>{other, s, cat("filler", i)}
                               : std::vector<std::string>{other, cat("filler", i), s},
             {y});
      return;
    }
    Tensor operand = term.value != 0 ? Tensor::scalar(term.value) : random(term.shape, 0.5f, 2, seed);
    for (std::int64_t j = 0; term.of_place && j < operand.count(); ++j)
      operand.as<float>()[j] = term.of_place(j / keys % queries, j % keys);
    b.constant(other, operand);
    b.node(op, cat("term", i),
           term.scores_first ? std::vector<std::string>{s, other} : std::vector<std::string>{other, s}, {y});
  }

  std::vector<Tensor> inputs() const {
    std::vector<Tensor> all{random({batch, queries, heads, features}, -1, 1, 1),
                            random({batch, keys - past, key_heads(), features}, -1, 1, 2),
                            random({batch, keys - past, key_heads(), values}, -1, 1, 3)};
    if (past > 0) {
      all.push_back(random({batch, key_heads(), past, features}, -1, 1, 4));
      all.push_back(random({batch, key_heads(), past, values}, -1, 1, 5));
    }
    return all;
  }
};

/// `others`: steps of what attention takes in.
std::vector<Tensor> run(const graph::Graph &g, const std::vector<Tensor> &inputs, runtime::Engine engine, int threads,
                        std::size_t &steps, std::size_t *others = nullptr) {
  std::vector<const Tensor *> pointers;
  for (const Tensor &t : inputs) pointers.push_back(&t);
  const runtime::Session session(g, {engine, threads});
  const auto profile = nlohmann::json::parse(session.profile(pointers));
  steps = 0;
  for (const auto &node : profile.at("nodes")) steps += node.at("op") == "Attention";
  if (others) {
    const std::set<std::string> taken{"Mul", "Div", "Expand", "IsNaN", "Where", "Softmax"};
    *others = 0;
    for (const auto &node : profile.at("nodes")) *others += taken.contains(node.at("op"));
  }
  return session.run(pointers);
}

void expect_one_step(const Formula &formula, const std::string &what) {
  const graph::Graph whole = formula.build(false), shown = formula.build(true);
  const std::vector<Tensor> inputs = formula.inputs();
  std::size_t steps = 0, others = 0;
  const Tensor by_definition = run(whole, inputs, runtime::Engine::reference, 1, steps)[0];
  assert_int_equal(steps, 0);
  each_isa([&](const std::string &isa) {
    const Tensor want = run(shown, inputs, runtime::Engine::native, 1, steps)[0];
    assert_int_equal(steps, 0);
    if (formula.integer)
      expect_equal(want, by_definition, cat(what, ", ", isa));
    else if (!equal_but_for_sums(want, by_definition, 0, 4e-6))
      fail_test(what, ", ", isa, ": is not the definition");
    for (const int threads : {1, 3}) {
      const Tensor got = run(whole, inputs, runtime::Engine::native, threads, steps, &others)[0];
      assert_int_equal(steps, 1);
      assert_int_equal(others, formula.leaves);
      const std::string where = cat(what, ", ", isa, ", ", threads, " threads");
      if (!formula.rounds_otherwise)
        expect_equal(got, want, where);
      else if (!equal_but_for_sums(got, want, 0, 4e-6))
        fail_test(where, ": are not the single steps");
    }
  });
}

void test_dialects(void **) {
  expect_one_step({}, "bare");
  expect_one_step({.terms = {{"Mul", {}}, {"Add", {2, 1, 1, 7}}}}, "scaled and masked");
  expect_one_step({.terms = {{"Div", {1}}, {"Add", {1, 3, 5, 7}}, {"Add", {2, 1, 5, 1}}}}, "bias of positions");
  for (const float scale : {8.0f, -0.25f, 5.657f})
    expect_one_step({.terms = {{"Div", {}, true, scale}, {"Add", {2, 3, 5, 7}}}}, cat("divided by ", scale));
  expect_one_step({.terms = {{"Mul", {3, 1, 1}}, {"Add", {7}}}}, "a scale for each head");
  expect_one_step({.terms = {{"Add", {5, 1}}, {"Mul", {}, false}}}, "a bias of queries, scaled");
  expect_one_step({.terms = {{"Add", {3, 5, 7}}, {"Add", {2, 1, 5, 7}}}}, "biased and masked");
  expect_one_step({.terms = {{"Mul", {3, 1, 1}, false}, {"Where", {1, 1, 5, 7}}}}, "a scale for each head, chosen");
  expect_one_step({.terms = {{"Where", {2, 1, 1, 7}, false}, {"Where", {5, 7}}}}, "chosen twice");
  expect_one_step({.terms = {{"Add", {5, 7}, false}, {"Sub", {7}}}}, "sums and differences");
  expect_one_step({.transposed_after = false, .clamped = true}, "clamped, as it lies");
}

void test_sizes(void **) {
  const std::vector<Term> terms{{"Mul", {}}, {"Add", {1}}};
  for (const std::int64_t queries : {1, 2, 13, 14, 15, 61, 200})
    for (const std::int64_t keys : {1, 3, 16, 33, 257})
      expect_one_step({.batch = 1, .heads = 2, .queries = queries, .keys = keys, .terms = terms},
                      cat(queries, " by ", keys));
  for (const std::int64_t features : {1, 17, 64})
    for (const std::int64_t values : {1, 31, 80})
      expect_one_step({.features = features, .values = values}, cat("features ", features, " and ", values));
  // More scores than are kept at a time.
  expect_one_step({.batch = 1, .heads = 1, .queries = 90, .keys = 3000, .terms = terms}, "long");
}

/// Keys and values of a cache, and those that follow.
void test_pasts(void **) {
  const std::vector<Term> terms{{"Mul", {}}, {"Add", {1}}};
  for (const std::int64_t queries : {1, 3, 40})
    for (const std::int64_t past : {1, 31, 32, 70})
      for (const std::int64_t now : {1, 5})
        expect_one_step({.queries = queries, .keys = past + now, .terms = terms, .past = past},
                        cat(queries, " queries, ", past, " keys before ", now));
  // Sums are added up in blocks of 128, which begin in one part and end in the other.
  for (const std::int64_t queries : {1, 8})
    for (const std::int64_t past : {1, 127, 128, 300})
      for (const std::int64_t now : {1, 140, 300})
        expect_one_step({.batch = 1,
                         .queries = queries,
                         .keys = past + now,
                         .features = 130,
                         .values = 17,
                         .terms = terms,
                         .past = past},
                        cat(queries, " queries, ", past, " keys before ", now, ", in blocks"));
  // Integers read the keys as one matrix.
  expect_one_step({.queries = 2, .keys = 33, .integer = true, .past = 32}, "integers");
}

/// Numbers by which keys and queries are multiplied go into the scores: powers of two with the same bits.
void test_factors_of_keys(void **) {
  for (const Term &by : {Term{"Mul", {}, true, 0.25f}, Term{"Mul", {}, false, 0.35f}, Term{"Div", {}, true, 2.83f}})
    for (const std::int64_t queries : {1, 40})
      for (const std::int64_t past : {0, 33})
        for (const bool turned_last : {false, true})
          for (const bool both : {false, true})
            expect_one_step({.queries = queries,
                             .keys = past + 7,
                             .terms = {{"Add", {1}}},
                             .past = past,
                             .of_keys = by,
                             .of_queries = both ? by : Term{nullptr, {}},
                             .turned_last = turned_last,
                             .rounds_otherwise = by.value != 0.25f},
                            cat(by.op, " of keys by ", by.value));
  expect_one_step({.terms = {{"Mul", {3, 1, 1}}, {"Where", {1, 1, 5, 7}}}, .of_keys = {"Mul", {}, true, 0.5f}},
                  "a factor of keys, and one for each head");
  expect_one_step({.of_queries = {"Mul", {}, true, 0.35f}, .leaves = 1}, "queries alone, which are few");
  for (const float by : {-0.5f, 0.0f, 1e-20f, 1e20f})
    expect_one_step({.of_keys = {"Mul", {}, true, by}, .leaves = 1}, cat("keys by ", by));
  expect_one_step({.of_keys = {"Div", {}, false, 0.5f}, .leaves = 1}, "a number divided by keys");
  expect_one_step({.integer = true, .of_keys = {"Mul", {}, true, 0.35f}, .leaves = 1}, "integers");
}

/// Heads of keys and values that are repeated for those of queries are read where they lie.
void test_shared_heads(void **) {
  for (const std::int64_t sharing : {2, 4})
    for (const std::int64_t queries : {1, 5, 40})
      for (const std::int64_t past : {0, 33})
        for (const bool integer : {false, true}) {
          const Formula formula{
              .heads = 4, .queries = queries, .keys = past + 7, .integer = integer, .past = past, .sharing = sharing};
          const std::vector<std::vector<Term>> terms{{},
                                                     {{"Mul", {}}, {"Add", {2, 1, 1, past + 7}}},
                                                     {{"Add", {1, 4, queries, past + 7}}},
                                                     {{"Mul", {4, 1, 1}}, {"Where", {4, queries, past + 7}}},
                                                     {{"Add", {queries, 1}}, {"Add", {past + 7}}}};
          for (const std::vector<Term> &some : terms) {
            Formula changed = formula;
            changed.terms = some;
            expect_one_step(changed, cat(sharing, " heads of queries share one, ", integer ? "integers" : "floats"));
          }
        }
  expect_one_step({.heads = 6,
                   .queries = 40,
                   .terms = {{"Add", {2, 6, 40, 7}}},
                   .sharing = 3,
                   .of_keys = {"Mul", {}, true, 0.25f},
                   .of_queries = {"Mul", {}, true, 0.25f},
                   .guarded = true},
                  "shared heads, multiplied and guarded");
  expect_one_step({.terms = {{"Add", {2, 3, 5, 7}}}, .sharing = 1}, "heads that are repeated once");
}

/// The same bits everywhere, since sums of integers have no order.
void test_integers(void **) {
  for (const bool centered : {false, true})
    for (const std::vector<Term> &terms :
         std::vector<std::vector<Term>>{{}, {{"Mul", {}}, {"Add", {2, 1, 1, 7}}}, {{"Where", {1, 1, 5, 7}}}})
      expect_one_step({.terms = terms, .integer = true, .centered = centered}, "integers");
  for (const std::int64_t queries : {1, 13, 15, 61})
    for (const std::int64_t keys : {1, 3, 33, 257})
      expect_one_step({.batch = 1, .heads = 2, .queries = queries, .keys = keys, .integer = true, .centered = true},
                      cat("integers, ", queries, " by ", keys));
  for (const std::int64_t features : {1, 17, 64})
    for (const std::int64_t values : {1, 31, 80})
      expect_one_step({.features = features, .values = values, .integer = true},
                      cat("integers, features ", features, " and ", values));
  expect_one_step({.batch = 1, .heads = 1, .queries = 90, .keys = 3000, .clamped = true, .integer = true}, "long");
}

float hide(bool hidden, float by) { return hidden ? by : 0; }

/// Keys that no query of a block sees are left out, which no bit shows.
void test_hidden_keys(void **) {
  const Term causal{"Add", {1, 1, 200, 200}, true, 0, [](auto i, auto j) { return hide(j > i, -kInfinity); }},
      lowest{"Add", {200, 200}, true, 0, [](auto i, auto j) { return hide(j > i, -3.4028235e38f); }},
      window{"Add", {200, 200}, true, 0, [](auto i, auto j) { return hide(j > i || j + 40 < i, -10000); }},
      blind{"Add", {200, 200}, true, 0, [](auto i, auto j) { return hide(j > i - 3, -3.4028235e38f); }},
      padding{"Add", {1, 1, 1, 200}, true, 0, [](auto, auto j) { return hide(j > 70, -kInfinity); }};
  constexpr auto before = [](auto i, auto j) { return j <= i ? 1.0f : 0.0f; };
  constexpr auto after = [](auto i, auto j) { return j <= i - 3 ? 0.0f : 1.0f; };  // some queries see nothing
  const Term kept{"Where", {1, 1, 200, 200}, true, 0, before}, hidden{"Where", {200, 200}, false, 0, after};
  std::vector<std::vector<Term>> formulas{{{"Mul", {}}, kept},
                                          {kept},
                                          {{"Div", {}, true, 4}, {"Mul", {}}, hidden},
                                          {{"Mul", {}}, kept, padding},
                                          {{"Add", {200}}, kept},
                                          {hidden, causal}};
  for (const Term &mask : {causal, lowest, window, blind, padding}) formulas.push_back({{"Mul", {}}, mask});
  for (const bool integer : {false, true})
    for (const std::vector<Term> &terms : formulas)
      expect_one_step({.batch = 1,
                       .heads = 2,
                       .queries = 200,
                       .keys = 200,
                       .features = 24,
                       .terms = terms,
                       .integer = integer,
                       .centered = integer},
                      "hidden keys");
}

/// One value for all heads, and a batch that only some operands have.
void test_broadcasts(void **) {
  const auto build = [](const std::vector<std::string> &outputs) {
    GraphBuilder b;
    b.input("q", {1, 4, 5, 8}).input("k", {2, 1, 8, 6}).input("v", {6, 3});
    b.node("MatMul", "scores", {"q", "k"}, {"s"});
    b.node("Softmax", "softmax", {"s"}, {"p"}, attrs({{"axis", std::int64_t{3}}}));
    b.node("MatMul", "mean", {"p", "v"}, {"y"});
    return b.build(outputs);
  };
  const std::vector<Tensor> inputs{random({1, 4, 5, 8}, -1, 1, 1), random({2, 1, 8, 6}, -1, 1, 2),
                                   random({6, 3}, -1, 1, 3)};
  std::size_t steps = 0;
  const Tensor want = run(build({"y", "p"}), inputs, runtime::Engine::native, 1, steps)[0];
  assert_int_equal(steps, 0);
  expect_equal(run(build({"y"}), inputs, runtime::Engine::native, 2, steps)[0], want, "broadcast");
  assert_int_equal(steps, 1);
}

/// Windows that are split from samples for a mask, and joined again, as shifted windows are.
void test_windows(void **) {
  constexpr std::int64_t kSamples = 2, kWindows = 3, kHeads = 4, kTokens = 5, kFeatures = 6;
  const auto build = [](const Shape &split, const Shape &joined, const Shape &mask, std::vector<std::string> outputs) {
    GraphBuilder b;
    b.input("q", {kSamples * kWindows, kHeads, kTokens, kFeatures}).input("v", {kHeads, kTokens, kFeatures});
    b.input("k", {kSamples * kWindows, kHeads, kFeatures, kTokens});
    b.constant("bias", random({1, kHeads, kTokens, kTokens}, -1, 1, 4)).constant("mask", random(mask, -1, 1, 5));
    b.constant("split", Tensor::from_ints(split)).constant("joined", Tensor::from_ints(joined));
    b.node("MatMul", "scores", {"q", "k"}, {"s"}).node("Add", "biased", {"s", "bias"}, {"b"});
    b.node("Reshape", "to windows", {"b", "split"}, {"w"}).node("Add", "masked", {"w", "mask"}, {"m"});
    b.node("Reshape", "back", {"m", "joined"}, {"j"}).node("Softmax", "softmax", {"j"}, {"p"});
    b.node("MatMul", "mean", {"p", "v"}, {"y"});
    return b.build(outputs);
  };
  const std::vector<Tensor> inputs{random({kSamples * kWindows, kHeads, kTokens, kFeatures}, -1, 1, 1),
                                   random({kHeads, kTokens, kFeatures}, -1, 1, 2),
                                   random({kSamples * kWindows, kHeads, kFeatures, kTokens}, -1, 1, 3)};
  const Shape joined{kSamples * kWindows, kHeads, kTokens, kTokens};
  const auto check = [&](const Shape &split, const Shape &end, const Shape &mask, std::size_t expected) {
    each_isa([&](const std::string &isa) {
      std::size_t steps = 0;
      const Tensor want = run(build(split, end, mask, {"y", "p"}), inputs, runtime::Engine::native, 1, steps)[0];
      assert_int_equal(steps, 0);
      for (const int threads : {1, 3}) {
        expect_equal(run(build(split, end, mask, {"y"}), inputs, runtime::Engine::native, threads, steps)[0], want,
                     isa);
        assert_int_equal(steps, expected);
      }
    });
  };
  check({kSamples, kWindows, kHeads, kTokens, kTokens}, joined, {1, kWindows, 1, kTokens, kTokens}, 1);
  check({kSamples, -1, kTokens, kTokens}, joined, {kWindows * kHeads, kTokens, 1}, 1);
  check({kSamples * kWindows * kHeads, kTokens, kTokens}, joined, {kTokens}, 1);
  // Other matrices, and a result in another stack.
  check({kSamples * kWindows, kHeads, 1, kTokens * kTokens}, joined, {kTokens * kTokens}, 0);
  check({kSamples, kWindows, kHeads, kTokens, kTokens}, {kSamples, kWindows, kHeads, kTokens, kTokens}, {kTokens}, 0);
}

/// A query that sees nothing is NaN in a formula, and no other is.
void test_rows_without_keys(void **) {
  GraphBuilder b;
  Tensor mask = random({3, 4}, 0, 0, 1);
  std::fill_n(mask.as<float>() + 4, 4, -kInfinity);
  b.input("q", {3, 2}).input("k", {2, 4}).input("v", {4, 2}).constant("mask", mask);
  b.node("MatMul", "scores", {"q", "k"}, {"s"}).node("Add", "add", {"s", "mask"}, {"m"});
  b.node("Softmax", "softmax", {"m"}, {"p"}, attrs({{"axis", std::int64_t{-1}}}));
  b.node("MatMul", "mean", {"p", "v"}, {"y"});
  const std::vector<Tensor> inputs{random({3, 2}, -1, 1, 1), random({2, 4}, -1, 1, 2), random({4, 2}, -1, 1, 3)};
  std::size_t steps = 0;
  const Tensor y = run(b.build({"y"}), inputs, runtime::Engine::native, 1, steps)[0];
  assert_int_equal(steps, 1);
  for (std::int64_t i = 0; i < 6; ++i) assert_int_equal(std::isnan(y.as<const float>()[i]), i / 2 == 1);
}

/// Where a formula says so, such a query has no share in anything; others have theirs.
void test_guards(void **) {
  constexpr auto blind = [](auto i, auto j) { return hide(j > i - 3, -kInfinity); };
  for (const std::int64_t queries : {1, 5, 8, 40, 200})
    for (const std::int64_t keys : {1, 7, 200})
      for (const bool clamped : {false, true})
        expect_one_step({.batch = 1,
                         .heads = 2,
                         .queries = queries,
                         .keys = keys,
                         .terms = {{"Mul", {}}, {"Add", {1, 1, queries, keys}, true, 0, blind}},
                         .clamped = clamped,
                         .guarded = true},
                        cat(queries, " queries by ", keys, " keys, guarded"));
  constexpr auto chosen = [](auto i, auto) { return i == 1 ? 0.0f : 1.0f; };
  expect_one_step({.terms = {{"Mul", {}}, {"Where", {5, 7}, true, 0, chosen}}, .past = 2, .guarded = true}, "chosen");
  // What is not finite makes all shares of a query NaN, and leaves others alone.
  for (const std::int64_t queries : {5, 40})
    for (const std::int64_t keys : {7, 40})
      for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()})
        for (const std::size_t input : {0, 1}) {
          const Formula formula{.batch = 1, .queries = queries, .keys = keys, .terms = {{"Mul", {}}}, .guarded = true};
          std::vector<Tensor> inputs = formula.inputs();
          inputs[input].as<float>()[inputs[input].count() / 2] = bad;
          each_isa([&](const std::string &isa) {
            std::size_t steps = 0;
            const Tensor want = run(formula.build(true), inputs, runtime::Engine::native, 1, steps)[0];
            expect_equal(run(formula.build(false), inputs, runtime::Engine::native, 1, steps)[0], want, cat(bad, isa));
            assert_int_equal(steps, 1);
          });
        }
}

/// Shares that are read elsewhere, another value in their place, and a test of other values are no guards.
void test_other_guards_stay(void **) {
  const auto steps_of = [](float value, const char *tested, std::vector<std::string> outputs, const char *product) {
    GraphBuilder b;
    b.input("q", {4, 4}).input("k", {4, 4}).input("v", {4, 4}).constant("value", Tensor::scalar(value));
    b.node(product, "scores", {"q", "k"}, {"s"}).node("Softmax", "softmax", {"s"}, {"p"});
    b.node("IsNaN", "test", {tested}, {"none"}).node("Where", "guard", {"none", "value", "p"}, {"g"});
    b.node(product, "mean", {"g", "v"}, {"y"});
    std::size_t steps = 0;
    run(b.build(outputs), {random({4, 4}, -1, 1, 1), random({4, 4}, -1, 1, 2), random({4, 4}, -1, 1, 3)},
        runtime::Engine::native, 1, steps);
    return steps;
  };
  assert_int_equal(steps_of(0, "p", {"y"}, "MatMul"), 1);
  assert_int_equal(steps_of(1, "p", {"y"}, "MatMul"), 0);
  assert_int_equal(steps_of(0, "v", {"y"}, "MatMul"), 0);
  assert_int_equal(steps_of(0, "p", {"y", "p"}, "MatMul"), 0);
  assert_int_equal(steps_of(0, "p", {"y", "g"}, "MatMul"), 0);
  assert_int_equal(steps_of(0, "p", {"y", "none"}, "MatMul"), 0);
  assert_int_equal(steps_of(0, "p", {"y"}, "DynamicMatMul"), 0);
}

/// What looks like a formula and is not one: another axis, a mask that makes more scores, a weight, scores read twice.
void test_others_stay(void **) {
  const auto steps_of = [](GraphBuilder &b, const std::vector<std::string> &outputs, std::int64_t axis,
                           const char *last) {
    b.node("Softmax", "softmax", {last}, {"p"}, attrs({{"axis", axis}})).node("MatMul", "mean", {"p", "v"}, {"y"});
    std::size_t steps = 0;
    run(b.build(outputs), {random({4, 4}, -1, 1, 1), random({4, 4}, -1, 1, 2), random({4, 4}, -1, 1, 3)},
        runtime::Engine::native, 1, steps);
    return steps;
  };
  const auto begin = [] {
    GraphBuilder b;
    b.input("q", {4, 4}).input("k", {4, 4}).input("v", {4, 4});
    b.node("MatMul", "scores", {"q", "k"}, {"s"});
    return b;
  };
  GraphBuilder plain = begin(), axis = begin(), mask = begin(), twice = begin(), divided = begin();
  assert_int_equal(steps_of(plain, {"y"}, -1, "s"), 1);
  assert_int_equal(steps_of(axis, {"y"}, 0, "s"), 0);
  mask.constant("m", random({2, 4, 4}, -1, 1, 5)).node("Add", "add", {"s", "m"}, {"more"});
  assert_int_equal(steps_of(mask, {"y"}, -1, "more"), 0);
  twice.node("Relu", "relu", {"s"}, {"r"});
  assert_int_equal(steps_of(twice, {"y", "r"}, -1, "s"), 0);
  divided.constant("m", random({4}, 1, 2, 5)).node("Div", "div", {"m", "s"}, {"d"});
  assert_int_equal(steps_of(divided, {"y"}, -1, "d"), 0);
}

/// Attention whose result a product reads as integers: one step, rounded as it lies, by the bits of the single steps.
void test_rounded_result(void **) {
  const auto build = [](const std::vector<std::string> &outputs) {
    GraphBuilder b;
    b.input("q", {2, 3, 5, 4}).input("k", {2, 3, 4, 7}).input("v", {2, 3, 7, 6});
    b.node("MatMul", "scores", {"q", "k"}, {"s"}).node("Softmax", "softmax", {"s"}, {"p"});
    b.node("MatMul", "context", {"p", "v"}, {"c"});
    b.node("Transpose", "back", {"c"}, {"t"}, attrs({{"perm", Ints{0, 2, 1, 3}}}));
    b.constant("shape", Tensor::from_ints(Ints{2, 5, 18})).node("Reshape", "rows", {"t", "shape"}, {"r"});
    b.constant("w", random({18, 4}, -1, 1, 5)).node("MatMul", "product", {"r", "w"}, {"y"});
    b.constant("bias", random({4}, -1, 1, 6)).node("Add", "add", {"bias", "y"}, {"z"});
    return quantized(b.build(outputs));
  };
  const graph::Graph whole = build({"z"}), shown = build({"z", "p"});
  const Tensor q = random({2, 3, 5, 4}, -1, 1.5f, 7), k = random({2, 3, 4, 7}, -1, 1.5f, 8),
               v = random({2, 3, 7, 6}, -1, 1.5f, 9);
  const Tensor *inputs[] = {&q, &k, &v};
  each_isa([&](const std::string &isa) {
    const Tensor want = runtime::Session(shown, {runtime::Engine::native, 1}).run(inputs)[0];
    const runtime::Session session(whole, {runtime::Engine::native, 1});
    expect_equal(session.run(inputs)[0], want, isa);
    std::vector<std::string> steps;
    const auto profile = nlohmann::json::parse(session.profile(inputs));
    for (const auto &node : profile.at("nodes")) steps.push_back(node.at("op"));
    assert_true((steps == std::vector<std::string>{"Attention", "QuantizeLinear", "MatMul+Add"}));
  });
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::test_dialects),     cmocka_unit_test(qtn::test::test_sizes),
      cmocka_unit_test(qtn::test::test_integers),     cmocka_unit_test(qtn::test::test_broadcasts),
      cmocka_unit_test(qtn::test::test_windows),      cmocka_unit_test(qtn::test::test_rows_without_keys),
      cmocka_unit_test(qtn::test::test_others_stay),  cmocka_unit_test(qtn::test::test_rounded_result),
      cmocka_unit_test(qtn::test::test_pasts),        cmocka_unit_test(qtn::test::test_hidden_keys),
      cmocka_unit_test(qtn::test::test_guards),       cmocka_unit_test(qtn::test::test_other_guards_stay),
      cmocka_unit_test(qtn::test::test_shared_heads), cmocka_unit_test(qtn::test::test_factors_of_keys)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
