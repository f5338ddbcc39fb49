// SPDX-License-Identifier: Apache-2.0
// Recurrent layers with constant weights in sessions: the golden cases of their operators, larger layers on every
// instruction set and with any number of threads.
#include <cstring>

#include "base/parallel.hpp"
#include "ops/support.hpp"
#include "runtime/support.hpp"

namespace qtn::test {
namespace {

constexpr const char *kLayers[] = {"LSTM", "GRU", "RNN"};

/// X, sequence_lens and initial states come from outside, all else is constant.
bool is_weight(std::size_t i) { return i == 1 || i == 2 || i == 3 || i == 7; }

/// One layer over such operands, with `outputs` outputs, of which the first `absent` have no name.
graph::Graph layer(const char *op, const Attrs &a, const std::vector<Tensor> &operands, std::size_t outputs,
                   std::size_t absent = 0) {
  GraphBuilder b;
  std::vector<std::string> names, results;
  std::vector<qdtype> dtypes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    names.push_back(operands[i].has_data() ? cat("in", i) : "");
    if (!operands[i].has_data()) continue;
    if (is_weight(i)) {
      b.constant(names.back(), operands[i]);
    } else {
      b.input(names.back(), operands[i].shape());
      dtypes.push_back(operands[i].dtype());
    }
  }
  for (std::size_t o = 0; o < outputs; ++o) results.push_back(cat("out", o));
  b.node(op, "layer", names, results, a);
  graph::Graph g = b.build({results.begin() + static_cast<std::ptrdiff_t>(absent), results.end()});
  for (std::size_t i = 0; i < dtypes.size(); ++i) g.value(g.inputs[i]).dtype = dtypes[i];
  for (std::size_t o = 0; o < absent; ++o) g.nodes[0].outputs[o] = graph::kNoValue;
  return g;
}

std::vector<const Tensor *> given(const std::vector<Tensor> &operands) {
  std::vector<const Tensor *> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].has_data() && !is_weight(i)) inputs.push_back(&operands[i]);
  return inputs;
}

std::string kernel_of(const runtime::Session &session, const std::vector<const Tensor *> &inputs) {
  return nlohmann::json::parse(session.profile(inputs)).at("nodes").back().at("kernel");
}

void golden_cases(void **) {
  std::size_t count = 0;
  for (const char *op : kLayers) {
    const nlohmann::json file = read_json(cat(QTN_GOLDEN_DIR, "/ops/", op, ".json"));
    for (const auto &c : file.at("cases")) {
      const std::string name = cat(op, "/", c.at("name").get<std::string>());
      std::vector<Tensor> operands;
      for (const auto &input : c.at("inputs")) operands.push_back(input.is_null() ? Tensor() : tensor_of(input));
      if (operands[0].dtype() != QTN_FLOAT32) continue;
      const Attrs a = attrs_of(c.at("attrs"), *ops::find_op(op));
      const std::size_t outputs = c.at("outputs").size();
      for (std::size_t absent = 0; absent < outputs; ++absent) {
        const runtime::Session session(layer(op, a, operands, outputs, absent), {});
        const std::vector<const Tensor *> inputs = given(operands);
        if (!kernel_of(session, inputs).starts_with("real_")) fail_test(name, ": runs by ", kernel_of(session, inputs));
        const std::vector<Tensor> got = session.run(inputs);
        for (std::size_t o = absent; o < outputs; ++o)
          expect_equal(got[o - absent], tensor_of(c.at("outputs")[o]), c.at("tolerance").get<double>(), name);
        ++count;
      }
    }
  }
  assert_true(count > 100);
}

std::vector<Tensor> random_layer(const std::string &op, std::int64_t steps, std::int64_t batch, std::int64_t features,
                                 std::int64_t hidden) {
  const std::int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  return {random({steps, batch, features}, -1, 1, 1), random({2, gates * hidden, features}, -0.3f, 0.3f, 2),
          random({2, gates * hidden, hidden}, -0.3f, 0.3f, 3), random({2, 2 * gates * hidden}, -0.2f, 0.2f, 4)};
}

// The same bits, whatever computes them; and what each sequence of a batch gives alone.
void bits_are_the_same(void **) {
  for (const char *op : kLayers)
    for (const std::int64_t linear : {0, 1}) {
      Attrs a = attrs({{"direction", std::string("bidirectional")}});
      if (op == std::string("GRU"))
        a.set("linear_before_reset", linear);
      else if (linear)
        continue;
      const std::vector<Tensor> operands = random_layer(op, 9, 3, 37, 53);
      const std::vector<const Tensor *> inputs = given(operands);
      const std::vector<Tensor> want = runtime::Session(layer(op, a, operands, 2), {}).run(inputs);
      each_isa([&](const std::string &isa) {
        for (const int threads : {1, 2, 5}) {
          const runtime::Session session(layer(op, a, operands, 2), {runtime::Engine::native, threads});
          const std::vector<Tensor> got = session.run(inputs);
          for (std::size_t o = 0; o < 2; ++o)
            expect_equal(got[o], want[o], cat(op, ", ", isa, ", ", threads, " threads"));
        }
      });
      for (std::int64_t b = 0; b < 3; ++b) {
        std::vector<Tensor> alone = operands;
        alone[0] = operands[0].slice(1, b, b + 1, 1).clone();
        const std::vector<const Tensor *> one = given(alone);
        const std::vector<Tensor> got = runtime::Session(layer(op, a, alone, 2), {}).run(one);
        expect_equal(got[0], want[0].slice(2, b, b + 1, 1).clone(), cat(op, ", sequence ", b));
        expect_equal(got[1], want[1].slice(1, b, b + 1, 1).clone(), cat(op, ", sequence ", b));
      }
    }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::golden_cases),
                              cmocka_unit_test(qtn::test::bits_are_the_same)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
