// SPDX-License-Identifier: Apache-2.0
// Recurrent layers with constant weights in sessions: the golden cases of their operators, larger layers on every
// instruction set and with any number of threads.
#include "graph/integer.hpp"
#include "onnx/onnx.hpp"
#include "ops/support.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/weights_only.hpp"
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
    const nlohmann::json file = golden(cat("ops/", op, ".json"));
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

/// The outputs with any number of threads and by any instruction set, which are those of one thread.
std::vector<Tensor> only_answer(const graph::Graph &g, const std::vector<const Tensor *> &inputs,
                                const std::string &what) {
  const std::vector<Tensor> want = runtime::Session(g, {runtime::Engine::native, 1}).run(inputs);
  each_isa([&](const std::string &isa) {
    for (const int threads : {1, 2, 5}) {
      const std::vector<Tensor> got = runtime::Session(g, {runtime::Engine::native, threads}).run(inputs);
      for (std::size_t o = 0; o < want.size(); ++o)
        expect_equal(got[o], want[o], cat(what, ", ", isa, ", ", threads, " threads"));
    }
  });
  return want;
}

struct Sizes {
  std::int64_t steps, batch, features, hidden;
};

// The same bits, whatever computes them; and what each sequence of a batch gives alone. Large batches run in parts.
void bits_are_the_same(void **) {
  for (const char *op : kLayers)
    for (const std::int64_t linear : {0, 1})
      for (const Sizes &s : {Sizes{9, 3, 37, 53}, Sizes{15, 19, 11, 13}, Sizes{2, 261, 5, 7}}) {
        Attrs a = attrs({{"direction", std::string("bidirectional")}});
        if (op == std::string("GRU"))
          a.set("linear_before_reset", linear);
        else if (linear)
          continue;
        const std::string what = cat(op, ", batch ", s.batch);
        const std::vector<Tensor> operands = random_layer(op, s.steps, s.batch, s.features, s.hidden);
        const std::vector<const Tensor *> inputs = given(operands);
        const graph::Graph g = layer(op, a, operands, 2), in_integers = quant::quantize_weights(g, {QTN_INT8, 0});
        const std::vector<Tensor> want = only_answer(g, inputs, what);
        const runtime::Session of_bytes(in_integers, {});
        assert_true(nlohmann::json::parse(of_bytes.profile(inputs)).at("nodes").back().at("dtype") == "int8");
        only_answer(in_integers, inputs, what + ", weights of int8");
        for (const std::int64_t b : {std::int64_t{0}, s.batch / 2, s.batch - 1}) {
          std::vector<Tensor> alone = operands;
          alone[0] = operands[0].slice(1, b, b + 1, 1).clone();
          const std::vector<Tensor> got = runtime::Session(layer(op, a, alone, 2), {}).run(given(alone));
          expect_equal(got[0], want[0].slice(2, b, b + 1, 1).clone(), cat(what, ", sequence ", b));
          expect_equal(got[1], want[1].slice(1, b, b + 1, 1).clone(), cat(what, ", sequence ", b));
        }
      }
}

/// A clamp moves none of the bits within it, and leaves the states alone.
void clamped_results(void **) {
  const float lo = -0.125f, hi = 0.25f;
  for (const char *op : kLayers) {
    const std::vector<Tensor> operands = random_layer(op, 5, 2, 19, 23);
    const std::vector<const Tensor *> inputs = given(operands);
    graph::Graph g = layer(op, attrs({{"direction", std::string("bidirectional")}}), operands, 2);
    std::vector<Tensor> want = runtime::Session(g, {}).run(inputs);
    g.nodes[0].clamp = ops::Clamp{lo, hi};
    const std::vector<Tensor> got = runtime::Session(g, {}).run(inputs);
    std::int64_t moved = 0;
    for (float &v : std::span(want[0].as<float>(), static_cast<std::size_t>(want[0].count()))) {
      moved += v < lo || v > hi;
      v = std::clamp(v, lo, hi);
    }
    assert_in_range(moved, 1, want[0].count() - 1);
    for (std::size_t o = 0; o < 2; ++o) expect_equal(got[o], want[o], cat(op, ", output ", o));
  }
}

/// What a file says of layers with int8 weights, in products of integers: ONNX Runtime computes the same in floats.
void integer_weights(void **) {
  constexpr double kHalves = 1e-4;  // what is lost of x and of the state, which products take in 15 bits
  const std::string folder = cat(QTN_GOLDEN_DIR, "/recurrent/");
  const nlohmann::json file = read_json(folder + "recurrent.json");
  assert_true(file.at("quantized").size() >= 15);
  for (const auto &c : file.at("quantized")) {
    const std::string name = c.at("name");
    const graph::Graph g = onnx::load(folder + name + ".onnx");
    std::vector<Tensor> operands;
    std::vector<const Tensor *> inputs;
    for (const auto &x : c.at("inputs")) operands.push_back(tensor_of(x));
    for (const Tensor &x : operands) inputs.push_back(&x);
    const std::vector<Tensor> want = runtime::Session(g, {}).run(inputs);
    for (std::size_t o = 0; o < want.size(); ++o) expect_equal(want[o], tensor_of(c.at("outputs")[o]), kHalves, name);
    each_isa([&](const std::string &isa) {
      for (const int threads : {1, 3}) {
        const runtime::Session session(g, {runtime::Engine::native, threads});
        const auto node = nlohmann::json::parse(session.profile(inputs)).at("nodes").back();
        if (node.at("dtype") != "int8") fail_test(name, ": runs by ", std::string(node.at("kernel")));
        const std::vector<Tensor> got = session.run(inputs);
        for (std::size_t o = 0; o < got.size(); ++o) expect_equal(got[o], want[o], cat(name, ", ", isa, ", ", threads));
      }
    });
    // A file that we write says the same.
    const std::string bytes = onnx::serialize(g, {});
    const graph::Graph again = onnx::parse(std::as_bytes(std::span(bytes)), "");
    const std::vector<Tensor> got = runtime::Session(again, {}).run(inputs);
    for (std::size_t o = 0; o < got.size(); ++o) expect_equal(got[o], want[o], name + ", written");
  }
}

/// How far the second is from the first.
double sqnr_of(const Tensor &want, const Tensor &got) {
  double signal = 0, lost = 0;
  for (std::int64_t i = 0; i < want.count(); ++i) {
    const double w = want.as<float>()[i], y = got.as<float>()[i];
    signal += w * w;
    lost += (w - y) * (w - y);
  }
  return 10 * std::log10(signal / lost);
}

// ONNX Runtime brings x and the state to 8 bits, which costs it 45 to 53 dB; we are where its floats are.
void lstm_of_onnx_runtime(void **) {
  const std::string folder = cat(QTN_GOLDEN_DIR, "/recurrent/");
  const nlohmann::json file = read_json(folder + "recurrent.json");
  assert_int_equal(file.at("microsoft").size(), 4);
  for (const auto &c : file.at("microsoft")) {
    const std::string name = c.at("name");
    const runtime::Session session(onnx::load(folder + name + ".onnx"), {});
    std::vector<Tensor> operands;
    std::vector<const Tensor *> inputs;
    for (const auto &x : c.at("inputs")) operands.push_back(tensor_of(x));
    for (const Tensor &x : operands) inputs.push_back(&x);
    const std::vector<Tensor> got = session.run(inputs);
    for (std::size_t o = 0; o < got.size(); ++o) {
      expect_equal(got[o], tensor_of(c.at("in_floats")[o]), 1e-4, name);
      const double sqnr = sqnr_of(tensor_of(c.at("outputs")[o]), got[o]);
      if (sqnr < 45) fail_test(name, ": ", sqnr, " dB");
    }
    // Weights further from their zero points than int8 reaches stay floats.
    const bool in_integers = !kernel_of(session, inputs).starts_with("real_");
    assert_int_equal(in_integers, name != "dynamic_uneven");
  }
}

Tensor noise(std::int64_t steps, std::int64_t features) {
  Tensor x(QTN_FLOAT32, {steps, 1, features});
  for (std::int64_t i = 0; i < x.count(); ++i)
    x.as<float>()[i] = static_cast<float>(static_cast<std::uint32_t>(i) * 2654435761u >> 20) / 2048 - 1;
  return x;
}

// Without drift: the last steps are as near to PyTorch as the first ones.
void thousand_steps(void **) {
  const std::string folder = cat(QTN_GOLDEN_DIR, "/recurrent/");
  const nlohmann::json file = read_json(folder + "recurrent.json");
  const Tensor x = noise(1000, 6);
  const Tensor *inputs[] = {&x};
  for (const auto &c : file.at("long")) {
    const graph::Graph g = onnx::load(folder + std::string(c.at("name")) + ".onnx");
    const Tensor want = tensor_of(c.at("outputs")[0]);
    const std::int64_t every = c.at("every"), row = want.count() / want.dim(0);
    const auto sqnr = [&](const graph::Graph &of, std::int64_t first) {
      const Tensor got = runtime::Session(of, {}).run(inputs)[0];
      double signal = 0, lost = 0;
      for (std::int64_t k = first; k < want.dim(0); ++k)
        for (std::int64_t i = 0; i < row; ++i) {
          const double w = want.as<float>()[k * row + i], y = got.as<float>()[((k + 1) * every - 1) * row + i];
          signal += w * w;
          lost += (w - y) * (w - y);
        }
      return 10 * std::log10(signal / lost);
    };
    const graph::Graph q = quant::quantize_dynamic(g, quant::Config("onnx"), {});
    for (const std::int64_t first : {0, 15}) {
      if (sqnr(g, first) < 110) fail_test(std::string(c.at("name")), ", float: ", sqnr(g, first), " dB");
      if (sqnr(q, first) < 48) fail_test(std::string(c.at("name")), ", dynamic: ", sqnr(q, first), " dB");
      std::printf("%s from sample %d: float %.1f dB, dynamic %.1f dB\n", std::string(c.at("name")).c_str(),
                  static_cast<int>(first), sqnr(g, first), sqnr(q, first));
    }
  }
}

// What the configuration says of recurrent layers.
void settings(void **) {
  const graph::Graph g = onnx::load(cat(QTN_GOLDEN_DIR, "/recurrent/gru_long.onnx"));
  const auto is_gru = [](const graph::Node &node) { return node.op == &ops::kGRU; };
  const auto weights = [&](const quant::Config &config) {
    const graph::Graph q = quant::quantize_dynamic(g, config, {});
    const auto node = std::ranges::find_if(q.nodes, is_gru);
    if (node == q.nodes.end()) fail_test("no GRU is left");
    return std::pair(q.value(node->inputs[1]).constant, q.value(node->inputs[2]).constant);
  };
  for (const char *recipe : {"onnx", "fbgemm", "qnnpack", "nvidia", "tflite"}) {
    const auto [w, r] = weights(quant::Config(recipe));
    for (const Tensor &t : {w, r}) {
      assert_string_equal(graph::recurrent_weight_misfit(t).c_str(), "");
      const std::size_t rows = t.quantizer()->per_channel() ? static_cast<std::size_t>(t.dim(1)) : 1;
      assert_int_equal(t.quantizer()->scales().size(), rows);
    }
  }
  quant::Config config("onnx");
  config.set("op:GRU", nullptr);
  assert_true(!weights(config).first.quantized());
  const Attrs blocks = attrs({{"weight_scheme", std::string("per_block_symmetric")}, {"block_size", std::int64_t{4}}});
  quant::Config in_blocks("onnx");
  in_blocks.set("op:GRU", &blocks);
  // Weights only: the same for int8, with blocks or without, and floats for fewer bits.
  for (const std::int64_t block : {0, 8})
    for (const qdtype dtype : {QTN_INT8, QTN_INT4}) {
      const graph::Graph q = quant::quantize_weights(g, {dtype, block});
      const auto node = std::ranges::find_if(q.nodes, is_gru);
      assert_true(node != q.nodes.end());
      assert_int_equal(graph::integer_form(q, *node) == graph::IntegerForm::recurrent, dtype == QTN_INT8);
    }
  expect_error(QTN_EUNSUPPORTED, {"not in blocks"}, [&] { weights(in_blocks); });
}

// Rows that are not finite give NaN, and others, however large or small, what floats give.
void awkward_states(void **) {
  const std::string folder = cat(QTN_GOLDEN_DIR, "/recurrent/");
  const graph::Graph g = onnx::load(folder + "lstm_both.onnx");
  std::vector<Tensor> operands;
  for (const graph::ValueId v : g.inputs) operands.push_back(random(*g.value(v).shape, -1, 1, 3));
  std::vector<const Tensor *> inputs;
  for (const Tensor &x : operands) inputs.push_back(&x);
  const auto run = [&](runtime::Engine engine) { return runtime::Session(g, {engine, 1}).run(inputs); };
  const std::int64_t size = operands[0].count() / operands[0].dim(0);  // a step, all batches
  for (const float value : {0.0f, 1e-42f, 1e-30f, 1e30f}) {
    std::fill_n(operands[0].as<float>(), size, value);
    const std::vector<Tensor> got = run(runtime::Engine::native), want = run(runtime::Engine::reference);
    for (std::size_t o = 0; o < got.size(); ++o) expect_equal(got[o], want[o], 1e-4, cat("x of ", value));
  }
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    operands[0].as<float>()[0] = value;  // of the first sequence
    const std::vector<Tensor> got = run(runtime::Engine::native);
    const std::int64_t hidden = got[1].dim(2);
    for (std::int64_t i = 0; i < hidden; ++i) {
      assert_true(std::isnan(got[1].as<float>()[i]));
      assert_true(std::isfinite(got[1].as<float>()[hidden + i]));
    }
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::golden_cases),    cmocka_unit_test(qtn::test::bits_are_the_same),
      cmocka_unit_test(qtn::test::integer_weights), cmocka_unit_test(qtn::test::lstm_of_onnx_runtime),
      cmocka_unit_test(qtn::test::thousand_steps),  cmocka_unit_test(qtn::test::settings),
      cmocka_unit_test(qtn::test::awkward_states),  cmocka_unit_test(qtn::test::clamped_results)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
