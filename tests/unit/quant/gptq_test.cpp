// SPDX-License-Identifier: Apache-2.0
// GPTQ rounds as its paper's algorithm does, and recovers what 4 bits lose on networks of all modes.
#include "quant/recover/gptq.hpp"

#include "networks.hpp"
#include "quant/quantize.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

struct Problem {
  std::int64_t outputs, depth, most;
  std::vector<float> weights, steps, qq, qy;
  std::vector<std::int64_t> zeros;

  explicit Problem(const nlohmann::json &c)
      : outputs(c.at("weights").at("shape")[0]), depth(c.at("weights").at("shape")[1]), most(c.at("most")) {
    const Tensor w = float_tensor(c.at("weights")), step = float_tensor(c.at("steps")), x = float_tensor(c.at("x"));
    weights.assign(w.as<const float>(), w.as<const float>() + w.count());
    steps.assign(step.as<const float>(), step.as<const float>() + step.count());
    zeros.assign(weights.size(), 0);
    const std::int64_t rows = x.dim(0);
    const auto at = [&](std::int64_t r, std::int64_t k) {
      return static_cast<double>(x.as<const float>()[r * depth + k]);
    };
    std::vector<double> h(static_cast<std::size_t>(depth * depth), 0);
    for (std::int64_t i = 0; i < depth; ++i)
      for (std::int64_t j = 0; j < depth; ++j)
        for (std::int64_t r = 0; r < rows; ++r)
          h[static_cast<std::size_t>(i * depth + j)] += at(r, i) * at(r, j) / static_cast<double>(rows);
    for (const double v : h) qq.push_back(static_cast<float>(v));
    for (std::int64_t i = 0; i < depth; ++i)
      for (std::int64_t o = 0; o < outputs; ++o) {
        double sum = 0;
        for (std::int64_t j = 0; j < depth; ++j)
          sum += h[static_cast<std::size_t>(i * depth + j)] *
                 static_cast<double>(weights[static_cast<std::size_t>(o * depth + j)]);
        qy.push_back(static_cast<float>(sum));
      }
  }

  RoundingProblem problem() const { return {outputs, depth, weights, steps, zeros, -most, most, qq, qy}; }
};

void rounds_as_the_paper_does(void **) {
  const nlohmann::json file = golden("quant/gptq.json");
  for (const nlohmann::json &c : file.at("cases")) {
    const Problem problem(c);
    const std::vector<std::int64_t> got = round_with_feedback(problem.problem(), 0.01);
    const std::vector<double> want = numbers(c.at("integers"));
    for (std::size_t i = 0; i < want.size(); ++i)
      if (got[i] != static_cast<std::int64_t>(want[i]))
        fail_test(problem.outputs, " x ", problem.depth, ", weight ", i, ": ", got[i], ", the paper's ", want[i]);
  }
}

/// Inputs without a sign of life, and none that is alive: what nothing is known of goes to the nearest integer.
void dead_inputs(void **) {
  constexpr std::size_t kDepth = 70;
  const Tensor w = normal({2, kDepth}, 3), x = normal({40, kDepth}, 4);
  for (const std::size_t alive : {0, 5, 69}) {
    std::vector<float> qq(kDepth * kDepth, 0), qy(kDepth * 2, 0), steps(kDepth * 2, 0.4f);
    for (std::size_t i = 0; i < alive; ++i)
      for (std::size_t j = 0; j < alive; ++j)
        for (std::size_t r = 0; r < 40; ++r)
          qq[i * kDepth + j] += x.as<const float>()[r * kDepth + i] * x.as<const float>()[r * kDepth + j] / 40;
    for (std::size_t i = 0; i < kDepth; ++i)
      for (std::size_t o = 0; o < 2; ++o)
        for (std::size_t j = 0; j < kDepth; ++j)
          qy[i * 2 + o] += qq[i * kDepth + j] * w.as<const float>()[o * kDepth + j];
    const std::vector<std::int64_t> zeros(kDepth * 2, 0);
    const RoundingProblem p{2, kDepth, {w.as<const float>(), 2 * kDepth}, steps, zeros, -8, 7, qq, qy};
    const std::vector<std::int64_t> got = round_with_feedback(p, 0.01);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (i % kDepth >= alive) assert_int_equal(got[i], p.nearest(i));
  }
}

/// Products of features that go together: 96 that follow from 12.
graph::Graph features() {
  GraphBuilder b;
  b.input("x", {8, 32})
      .constant("few", normal({32, 12}, 4, 0.2f))
      .constant("mix", normal({12, 96}, 1, 0.3f))
      .constant("first", normal({96, 64}, 2, 0.1f));
  b.constant("second", normal({64, 16}, 3, 0.1f));
  b.node("MatMul", "narrow", {"x", "few"}, {"n"})
      .node("MatMul", "a", {"n", "mix"}, {"u"})
      .node("Relu", "relu", {"u"}, {"r"});
  b.node("MatMul", "b", {"r", "first"}, {"v"}).node("Tanh", "tanh", {"v"}, {"t"});
  b.node("MatMul", "c", {"t", "second"}, {"y"});
  return b.build({"y"});
}

void recovers_coarse_weights(void **) {
  const Samples samples = normal_samples({8, 32}, 24);
  const Samples unseen{8, [](std::size_t i) { return normal_samples({8, 32}, 32).read(24 + i); }};
  const graph::Graph real = features();
  for (const char *mode : {"static", "weights_only"}) {
    Config config("onnx");
    const Attrs settings =
        attrs({{"mode", mode}, {"weight_dtype", "int4"}, {"weight_scheme", "per_block_symmetric"}, {"block_size", 16}});
    config.set("*", &settings);
    const auto sqnr = [&](std::int64_t tries) {
      const Attrs options = attrs({{"gptq", tries}});
      const Quantized q = quantize(real, config, samples, &options, {});
      const bool tried = std::ranges::any_of(q.report.trials, [](const Trial &t) { return t.name == "gptq"; });
      assert_true(tried == (tries == 1));
      return difference(real, q.graph, unseen).sqnr_db();
    };
    const double nearest = sqnr(0), rounded = sqnr(1);
    if (!(rounded > nearest + 2)) fail_test(mode, ": nearest ", nearest, " dB, GPTQ ", rounded, " dB");
  }
}

/// Weights of 8 bits lose next to nothing, and one sample cannot judge what is fitted to it.
void is_not_tried_in_vain(void **) {
  const Attrs int4 = attrs({{"weight_dtype", "int4"}});
  for (const auto &[count, coarse] : {std::pair{1, true}, {6, false}}) {
    Config config("onnx");
    if (coarse) config.set("*", &int4);
    const Quantized q =
        quantize(features(), config, normal_samples({8, 32}, static_cast<std::size_t>(count)), nullptr, {});
    for (const Trial &trial : q.report.trials) assert_false(trial.name.starts_with("gptq"));
  }
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(rounds_as_the_paper_does),
      cmocka_unit_test(dead_inputs),
      cmocka_unit_test(recovers_coarse_weights),
      cmocka_unit_test(is_not_tried_in_vain),
  };
  return cmocka_run_group_tests_name("gptq", tests, nullptr, nullptr);
}
