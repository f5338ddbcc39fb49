// SPDX-License-Identifier: Apache-2.0
// Equalization keeps the function, AdaRound finds what trying every rounding finds, bias correction restores means.
#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "networks.hpp"
#include "quant/fingerprint.hpp"
#include "quant/quantize.hpp"
#include "quant/recover/adaround.hpp"
#include "quant/recover/correct.hpp"
#include "quant/recover/equalize.hpp"
#include "quant/recover/linked_scales.hpp"
#include "quant/recover/moments.hpp"
#include "quant/recover/smooth.hpp"
#include "quant/recover/walk.hpp"
#include "runtime/watched.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

const Samples kSamples = normal_samples({1, 2, 6, 6}, 24);

void links_of_a_chain(void **) {
  const graph::Graph g = chain();
  std::vector<std::string> found;
  for (const Link &link : find_links(g)) found.push_back(g.nodes[link.from].name + " " + g.nodes[link.to].name);
  const std::vector<std::string> want = {"first second", "second third", "third last"};
  assert_true(found == want);
}

void no_links(void **) {
  const auto count = [](GraphBuilder &builder, const std::vector<std::string> &outputs) {
    graph::Graph g = builder.build(outputs);
    graph::run_passes(g, graph::Pipeline::inference);
    return find_links(g).size();
  };
  const auto two = [](const std::string &middle) {
    GraphBuilder builder;
    builder.input("x", {1, 4, 3, 3}).conv("a", "x", "u", 4, 4).conv("b", middle, "y", 4, 4);
    return builder;
  };
  GraphBuilder linked = two("u");
  assert_int_equal(count(linked, {"y"}), 1);
  GraphBuilder read_twice = two("u");
  assert_int_equal(count(read_twice, {"y", "u"}), 0);
  GraphBuilder bounded;  // ReLU6 is not homogeneous
  bounded.input("x", {1, 4, 3, 3})
      .constant("lo", Tensor::scalar(0))
      .constant("hi", Tensor::scalar(6))
      .conv("a", "x", "u", 4, 4)
      .node("Clip", "clip", {"u", "lo", "hi"}, {"v"})
      .conv("b", "v", "y", 4, 4);
  assert_int_equal(count(bounded, {"y"}), 0);
  GraphBuilder curved;
  curved.input("x", {1, 4, 3, 3})
      .conv("a", "x", "u", 4, 4)
      .node("Sigmoid", "sigmoid", {"u"}, {"v"})
      .conv("b", "v", "y", 4, 4);
  assert_int_equal(count(curved, {"y"}), 0);
}

void expect_same_function(const graph::Graph &a, const graph::Graph &b) {
  const double sqnr = difference(a, b, kSamples).sqnr_db();
  if (sqnr < 110) fail_test("the function changed: ", sqnr, " dB");
}

/// A number of channels which happens to be that of another axis is no link: a factor would go to the wrong elements.
void other_axes_are_no_channels(void **) {
  const auto links = [](GraphBuilder &builder) {
    graph::Graph g = builder.build({"y"});
    graph::run_passes(g, graph::Pipeline::inference);
    return find_links(g).size();
  };
  const auto matrix = [](std::int64_t rows, std::int64_t columns) { return GraphBuilder::ramp({rows, columns}); };
  const auto shape = [](std::vector<std::int64_t> dims) {
    return Tensor::from<std::int64_t>(QTN_INT64, Shape{static_cast<std::int64_t>(dims.size())}, dims);
  };
  GraphBuilder along_places;  // MatMul reads the last axis, as long as there are channels
  along_places.input("x", {1, 3, 2, 4})
      .conv("a", "x", "u", 3, 4)
      .constant("w", matrix(4, 5))
      .node("MatMul", "b", {"u", "w"}, {"y"});
  assert_int_equal(links(along_places), 0);
  GraphBuilder into_convolution;  // which reads axis 1
  into_convolution.input("x", {1, 4, 3, 3})
      .constant("w", matrix(3, 4))
      .node("MatMul", "a", {"x", "w"}, {"u"})
      .conv("b", "u", "y", 4, 2);
  assert_int_equal(links(into_convolution), 0);
  GraphBuilder pooled;  // over the last axis, the features of MatMul
  pooled.input("x", {1, 2, 4, 6})
      .constant("w", matrix(6, 6))
      .node("MatMul", "a", {"x", "w"}, {"u"})
      .node("MaxPool", "pool", {"u"}, {"v"},
            attrs({{"kernel_shape", std::vector<std::int64_t>{1, 3}}, {"pads", std::vector<std::int64_t>{0, 1, 0, 1}}}))
      .node("MatMul", "b", {"v", "w"}, {"y"});
  assert_int_equal(links(pooled), 0);
  GraphBuilder by_channel;  // each row is one channel's places
  by_channel.input("x", {1, 3, 2, 4})
      .conv("a", "x", "u", 3, 4)
      .constant("dims", shape({4, 8}))
      .node("Reshape", "reshape", {"u", "dims"}, {"v"})
      .constant("w", matrix(8, 5))
      .node("Gemm", "b", {"v", "w"}, {"y"});
  assert_int_equal(links(by_channel), 0);
  GraphBuilder flattened;
  flattened.input("x", {1, 3, 2, 4})
      .conv("a", "x", "u", 3, 4)
      .constant("dims", shape({1, 32}))
      .node("Reshape", "reshape", {"u", "dims"}, {"v"})
      .constant("w", matrix(32, 5))
      .node("Gemm", "b", {"v", "w"}, {"y"});
  assert_int_equal(links(flattened), 1);
}

/// Where lengths are open, too, and the batch: a Gemm that reads a row for each image reads channels, another does not.
void images_of_any_size(void **) {
  using Step = std::function<void(GraphBuilder &)>;  // from "u", the images, to "v", the rows
  const auto links = [](const Shape &x, std::int64_t depth, const Step &step) {
    GraphBuilder b;
    b.input("x", x).conv("a", "x", "u", 3, 4);
    step(b);
    b.constant("w", GraphBuilder::ramp({depth, 5})).node("Gemm", "b", {"v", "w"}, {"y"});
    graph::Graph g = b.build({"y"});
    graph::run_passes(g, graph::Pipeline::inference);
    return find_links(g).size();
  };
  const auto dims = [](std::vector<std::int64_t> of) {
    return Tensor::from<std::int64_t>(QTN_INT64, Shape{static_cast<std::int64_t>(of.size())}, of);
  };
  const auto flatten = [](std::int64_t axis) -> Step {
    return [axis](GraphBuilder &b) { b.node("Flatten", "flatten", {"u"}, {"v"}, attrs({{"axis", axis}})); };
  };
  const auto reshape = [&](std::vector<std::int64_t> to, const std::string &from = "u") -> Step {
    return [=](GraphBuilder &b) { b.constant("dims", dims(to)).node("Reshape", "reshape", {from, "dims"}, {"v"}); };
  };
  const auto pooled = [](const Step &step) -> Step {
    return [step](GraphBuilder &b) {
      b.node("GlobalAveragePool", "mean", {"u"}, {"m"});
      step(b);
    };
  };
  const Step squeeze = [&](GraphBuilder &b) {
    b.constant("axes", dims({2, 3})).node("Squeeze", "squeeze", {"m", "axes"}, {"v"});
  };
  const Shape any{-1, 3, -1, -1}, small{-1, 3, 2, 4};
  assert_int_equal(links(any, 32, flatten(1)), 1);
  assert_int_equal(links(any, 32, flatten(-3)), 1);
  assert_int_equal(links(any, 32, reshape({0, -1})), 1);
  assert_int_equal(links(any, 4, pooled(reshape({-1, 4}, "m"))), 1);
  assert_int_equal(links(any, 4, pooled(squeeze)), 1);
  assert_int_equal(links(small, 32, reshape({-1, 32})), 1);
  assert_int_equal(links(any, 8, flatten(2)), 0);
  assert_int_equal(links(any, 8, reshape({-1, 8})), 0);
  assert_int_equal(links(any, 32, reshape({-1, 32})), 0);  // of larger images, several rows each
  assert_int_equal(links(small, 8, reshape({-1, 8})), 0);

  GraphBuilder joined;  // images side by side: a row is one image's only where the batch is one
  joined.input("images", {-1, 3, 2, 2}).constant("side", dims({1, 3, -1, 2}));
  joined.node("Reshape", "join", {"images", "side"}, {"x"}).conv("a", "x", "u", 3, 4);
  reshape({-1, 16})(joined);
  joined.constant("w", GraphBuilder::ramp({16, 5})).node("Gemm", "b", {"v", "w"}, {"y"});
  assert_true(find_links(joined.build({"y"})).empty());

  const Step pool_over_channels = [&](GraphBuilder &b) {  // which stand side by side
    b.constant("wide", dims({0, 1, 4, 8})).node("Reshape", "widen", {"u", "wide"}, {"m"});
    b.node("MaxPool", "pool", {"m"}, {"p"},
           attrs({{"kernel_shape", std::vector<std::int64_t>{3, 3}}, {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}));
    b.node("Flatten", "flatten", {"p"}, {"v"});
  };
  assert_int_equal(links(small, 32, pool_over_channels), 0);
}

void weights_have_equal_ranges(void **) {
  const graph::Graph before = chain(1000);
  graph::Graph after = before;
  equalize_weights(after, [](const graph::Node &) { return true; });
  expect_same_function(before, after);
  const LinkedScales scales(after, find_links(after));
  for (std::size_t i = 0; i < scales.count(); ++i) {
    const std::vector<double> made = scales.made(i), read = scales.read(i);
    for (std::size_t c = 0; c < made.size(); ++c)
      if (std::fabs(made[c] / read[c] - 1) > 0.03) fail_test("channel ", c, ": ", made[c], " and ", read[c]);
  }
}

void spread_channels_are_rescued(void **) {
  Config config("onnx");
  const Attrs per_tensor = attrs({{"weight_scheme", "per_tensor_symmetric"}});
  config.set("*", &per_tensor);
  const graph::Graph g = chain(1000);
  graph::Graph equal = g;
  equalize_weights(equal, [](const graph::Node &) { return true; });
  const auto quantized = [&](const graph::Graph &from) {
    return difference(g, convert(calibrated(from, config, kSamples), nullptr), kSamples).sqnr_db();
  };
  const double before = quantized(g), after = quantized(equal), ideal = quantized(chain());
  if (before > ideal - 6 || after < ideal - 3) fail_test(before, " dB, equalized ", after, ", never spread ", ideal);
}

/// Five layers deep, with channels of each made up to 1000 times as large as others and with biases that count.
void deep_networks_are_rescued(void **) {
  const auto deep = [](float spread) {
    GraphBuilder builder;
    builder.input("x", {1, 4, 6, 6});
    std::vector<float> factors(4, 1);
    std::string last = "x";
    for (unsigned i = 0; i < 5; ++i) {
      Tensor weight = normal({8, i == 0 ? 4 : 8, 1, 1}, i + 1, 0.5f), bias = normal({8}, i + 11, 0.3f);
      const std::int64_t inputs = weight.dim(1);
      for (std::int64_t e = 0; e < weight.count(); ++e)
        weight.as<float>()[e] /= factors[static_cast<std::size_t>(e % inputs)];
      factors.assign(8, 1);
      for (std::size_t c = 0; c < 8 && i < 4; ++c) {
        factors[c] = std::pow(spread, static_cast<float>((c * 3 + i * 5) % 8) / 7);
        for (std::int64_t e = 0; e < inputs; ++e)
          weight.as<float>()[static_cast<std::int64_t>(c) * inputs + e] *= factors[c];
        bias.as<float>()[c] *= factors[c];
      }
      const std::string n = std::to_string(i), y = i == 4 ? "y" : "v" + n;
      builder.constant("w" + n, weight).constant("b" + n, bias);
      builder.node("Conv", "conv" + n, {last, "w" + n, "b" + n}, {i == 4 ? "y" : "u" + n});
      if (i < 4) builder.node("Relu", "relu" + n, {"u" + n}, {y});
      last = y;
    }
    graph::Graph g = builder.build({"y"});
    graph::run_passes(g, graph::Pipeline::inference);
    return g;
  };
  const Samples samples = normal_samples({1, 4, 6, 6}, 16);
  Config equalizing("onnx");
  const Attrs on = attrs({{"equalize", 1}});
  equalizing.set("*", &on);
  const auto sqnr = [&](const graph::Graph &g, const Config &config) {
    return difference(g, convert(calibrated(g, config, samples), nullptr), samples).sqnr_db();
  };
  const double before = sqnr(deep(1000), Config("onnx")), after = sqnr(deep(1000), equalizing);
  const double ideal = sqnr(deep(1), Config("onnx"));
  if (before > ideal - 10 || after < ideal - 3) fail_test(before, " dB, equalized ", after, ", never spread ", ideal);
}

/// Strength 0.5 gives max|x| = max|w|. Weights of the last layer are those that no other
/// link scales again.
void activations_have_equal_ranges(void **) {
  const graph::Graph before = chain(1000);
  graph::Graph after = before;
  equalize_activations(after, kSamples, 0.5);
  expect_same_function(before, after);
  const Link link = find_links(after).back();
  std::vector<float> largest(6, 0);
  runtime::Watched engine(after, {after.nodes[link.from].outputs[0]});
  for (std::size_t s = 0; s < kSamples.count; ++s)
    engine.run(kSamples.read(s), [&](graph::ValueId, const Tensor &shown) {
      const Tensor t = shown.to_contiguous();
      for (std::int64_t i = 0; i < t.count(); ++i) {
        float &of_channel = largest[static_cast<std::size_t>(i / 9 % 6)];
        of_channel = std::max(of_channel, std::fabs(t.as<const float>()[i]));
      }
    });
  const std::vector<Link> links = find_links(after);
  const std::vector<double> read = LinkedScales(after, links).read(links.size() - 1);
  for (std::size_t c = 0; c < read.size(); ++c)
    if (std::fabs(static_cast<double>(largest[c]) / read[c] - 1) > 1e-3)
      fail_test("channel ", c, ": x ", largest[c], ", w ", read[c]);
}

/// Features of a LayerNormalization, of which some are many times as large as the others, and three that read them: two
/// products and a residual connection.
graph::Graph features(float outlier) {
  GraphBuilder b;
  Tensor scale(QTN_FLOAT32, {32}), first(QTN_FLOAT32, {32, 32}), second(QTN_FLOAT32, {32, 32});
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::fill_n(scale.as<float>(), 32, 1.0f);
  for (const int c : {3, 17, 30}) scale.as<float>()[c] = outlier;
  for (const Tensor &w : {first, second})
    for (std::int64_t i = 0; i < w.count(); ++i) w.as<float>()[i] = normal(random) / (scale.as<float>()[i / 32] * 5.6f);
  b.input("x", {1, 12, 32}).constant("scale", scale).constant("first", first).constant("second", second);
  b.node("LayerNormalization", "norm", {"x", "scale"}, {"n"});
  b.node("MatMul", "a", {"n", "first"}, {"u"}).node("MatMul", "b", {"n", "second"}, {"v"});
  b.node("Mul", "mul", {"u", "v"}, {"y"}).node("Add", "add", {"n", "u"}, {"z"});
  return b.build({"y", "z"});
}

void features_are_smoothed(void **) {
  const Samples samples = normal_samples({1, 12, 32}, 16);
  const Samples unseen{8, [](std::size_t i) { return normal_samples({1, 12, 32}, 32).read(16 + i); }};
  const Config config("onnx");
  graph::Graph even = features(1), smooth = features(60);
  assert_false(smooth_features(even, config, samples));
  const graph::Graph before = smooth;
  assert_true(smooth_features(smooth, config, samples));
  assert_int_equal(smooth.nodes.size(), before.nodes.size() + 1);  // one multiplication for both
  const double sqnr = difference(before, smooth, samples).sqnr_db();
  if (sqnr < 110) fail_test("the function changed: ", sqnr, " dB");
  const auto loss = [&](const char *key, std::int64_t value) {
    const Attrs options = attrs({{key, value}});
    return difference(before, quantize(before, config, samples, &options, {}).graph, unseen).sqnr_db();
  };
  const double plain = loss("plain", 1), by_default = loss("plain", 0);
  if (!(by_default > plain + 10)) fail_test("plain ", plain, " dB, by default ", by_default, " dB");

  Config named("onnx");
  const Attrs minmax = attrs({{"observer", std::string("minmax")}});
  named.set("tensor:n", &minmax);
  graph::Graph kept = before;
  assert_false(smooth_features(kept, named, samples));
}

void constant_parts_are_absorbed(void **) {
  GraphBuilder builder;
  builder.input("x", {1, 4, 3, 3})
      .constant("wa", normal({4, 4, 1, 1}, 1, 0.1f))
      .constant("ba", floats({4}, {5, -9, 0, 7}))
      .constant("wb", normal({3, 4, 1, 1}, 2))
      .constant("bb", normal({3}, 3))
      .node("Conv", "a", {"x", "wa", "ba"}, {"u"})
      .node("Relu", "relu", {"u"}, {"v"})
      .node("Conv", "b", {"v", "wb", "bb"}, {"y"});
  graph::Graph before = builder.build({"y"});
  graph::run_passes(before, graph::Pipeline::inference);
  const Samples samples = normal_samples({1, 4, 3, 3}, 10);
  graph::Graph after = before;
  absorb_biases(after, samples);
  assert_true(difference(before, after, samples).sqnr_db() > 110);
  std::vector<float> smallest(4, std::numeric_limits<float>::infinity());
  runtime::Watched engine(after, {node_named(after, "a").outputs[0]});
  for (std::size_t s = 0; s < samples.count; ++s)
    engine.run(samples.read(s), [&](graph::ValueId, const Tensor &t) {
      for (std::int64_t i = 0; i < t.count(); ++i) {
        float &of_channel = smallest[static_cast<std::size_t>(i / 9)];
        of_channel = std::min(of_channel, t.as<const float>()[i]);
      }
    });
  for (const float v : smallest) assert_true(v == 0.0f || v < 1e-5f);
  const Tensor bias = after.value(node_named(after, "a").inputs[2]).constant;
  assert_true(bias.as<const float>()[0] < 2 && bias.as<const float>()[3] < 4);  // of 5 and 7
  assert_true(bias.as<const float>()[1] == -9);
}

double loss_of(const RoundingProblem &p, const std::vector<std::int64_t> &q) {
  double sum = 0;
  for (std::int64_t r = 0; r < p.outputs; ++r)
    for (std::int64_t i = 0; i < p.depth; ++i) {
      const auto w = [&](std::int64_t k) {
        const auto at = static_cast<std::size_t>(r * p.depth + k);
        return static_cast<double>(q[at] - p.zeros[at]) * static_cast<double>(p.steps[at]);
      };
      sum -= 2 * w(i) * static_cast<double>(p.qy[static_cast<std::size_t>(i * p.outputs + r)]);
      for (std::int64_t k = 0; k < p.depth; ++k)
        sum += w(i) * w(k) * static_cast<double>(p.qq[static_cast<std::size_t>(i * p.depth + k)]);
    }
  return sum;
}

/// Inputs whose channels go together, so that rounding errors add up or cancel.
void rounding_is_as_good_as_trying_all(void **) {
  constexpr std::int64_t kDepth = 10, kRows = 200;
  double learned_over_best = 0, nearest_over_best = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Tensor common = normal({kRows}, seed), own = normal({kRows, kDepth}, seed + 50, 0.3f);
    const Tensor weight = normal({kDepth}, seed + 100);
    std::vector<float> qq(kDepth * kDepth, 0), qy(kDepth, 0);
    double yy = 0;
    for (std::int64_t n = 0; n < kRows; ++n) {
      float x[kDepth], y = 0;
      for (std::int64_t k = 0; k < kDepth; ++k) {
        x[k] = common.as<const float>()[n] + own.as<const float>()[n * kDepth + k];
        y += weight.as<const float>()[k] * x[k];
      }
      yy += static_cast<double>(y * y) / kRows;
      for (std::int64_t k = 0; k < kDepth; ++k) {
        qy[static_cast<std::size_t>(k)] += x[k] * y / kRows;
        for (std::int64_t j = 0; j < kDepth; ++j) qq[static_cast<std::size_t>(k * kDepth + j)] += x[k] * x[j] / kRows;
      }
    }
    const std::vector<float> steps(kDepth, 0.4f);
    const std::vector<std::int64_t> zeros(kDepth, 0);
    const RoundingProblem p{1, kDepth, {weight.as<const float>(), kDepth}, steps, zeros, -8, 7, qq, qy};
    std::vector<std::int64_t> nearest(kDepth), q(kDepth);
    for (std::size_t k = 0; k < kDepth; ++k)
      nearest[k] = static_cast<std::int64_t>(std::nearbyint(weight.as<const float>()[k] / 0.4f));
    double best = std::numeric_limits<double>::infinity();
    for (unsigned bits = 0; bits < 1u << kDepth; ++bits) {
      for (std::size_t k = 0; k < kDepth; ++k)
        q[k] = static_cast<std::int64_t>(std::floor(weight.as<const float>()[k] / 0.4f)) + (bits >> k & 1);
      best = std::min(best, loss_of(p, q) + yy);
    }
    const double learned = loss_of(p, learn_rounding(p, 500)) + yy;
    assert_true(learned <= loss_of(p, nearest) + yy + 1e-6);
    learned_over_best += learned / best / 20;
    nearest_over_best += (loss_of(p, nearest) + yy) / best / 20;
  }
  if (learned_over_best > 1.3 || nearest_over_best < 3)
    fail_test("of the least loss: learned ", learned_over_best, ", nearest ", nearest_over_best);
}

graph::Graph corrected(const PreparedModel &p, const Corrections &which) {
  graph::Graph g = convert(p, nullptr);
  correct(p, g, kSamples, which);
  return g;
}

void means_are_restored(void **) {
  const PreparedModel p = calibrated(chain(), Config("onnx"), kSamples);
  const graph::Graph plain = convert(p, nullptr), g = corrected(p, {.bias = true});
  const auto offset = [&](const graph::Graph &q) {  // of the means of the five outputs, squared and summed
    double sum[5] = {}, total = 0;
    for (std::size_t s = 0; s < kSamples.count; ++s) {
      const auto inputs = kSamples.read(s);
      const Tensor a = graph::evaluate(p.graph, inputs)[0], b = graph::evaluate(q, inputs)[0];
      for (std::size_t i = 0; i < 5; ++i)
        sum[i] +=
            static_cast<double>(b.as<const float>()[i] - a.as<const float>()[i]) / static_cast<double>(kSamples.count);
    }
    for (const double v : sum) total += v * v;
    return total;
  };
  // What the samples do not agree on stays.
  if (offset(g) > offset(plain) / 10) fail_test("offset ", offset(plain), ", corrected ", offset(g));
}

/// More inputs and outputs than are taken together, and no whole number of either.
void means_of_long_rows(void **) {
  constexpr std::size_t kDepth = 1037, kOutputs = 35, kParts = 3;
  const Layer layer{1, kOutputs, kDepth};
  const Shape shape{kOutputs, kDepth};
  const Tensor weight = normal(shape, 1), rounded = normal(shape, 2);
  Moments moments;
  moments.significant = 0;  // the mean of the parts, as it is
  for (unsigned part = 0; part < kParts; ++part) {
    const std::vector<float> x = float_values(normal({kDepth}, 10 + part), "x"),
                             q = float_values(normal({kDepth}, 20 + part), "q");
    moments.parts.push_back({{x.begin(), x.end()}, {q.begin(), q.end()}});
  }
  const std::vector<double> errors = mean_errors(layer, moments, weight.as<const float>(), rounded.as<const float>());
  assert_int_equal(errors.size(), kOutputs);
  for (std::size_t o = 0; o < kOutputs; ++o) {
    double want = 0;
    for (const Moments::Part &part : moments.parts)
      for (std::size_t i = 0; i < kDepth; ++i)
        want += (static_cast<double>(weight.as<const float>()[o * kDepth + i]) * part.x[i] -
                 static_cast<double>(rounded.as<const float>()[o * kDepth + i]) * part.q[i]) /
                kParts;
    if (std::fabs(errors[o] - want) > 1e-9) fail_test("output ", o, ": ", errors[o], ", not ", want);
  }
}

/// One sample among many says nothing: what it alone would have corrected stays.
void single_samples_do_not_correct(void **) {
  const PreparedModel p = calibrated(chain(), Config("onnx"), kSamples);
  const Samples same = {8, [](std::size_t i) {
                          Tensor x = normal({1, 2, 6, 6}, 1);
                          if (i == 3) x = normal({1, 2, 6, 6}, 2, 30);  // far outside of what calibrated
                          return std::vector<Tensor>{x};
                        }};
  graph::Graph g = convert(p, nullptr), calm = g;
  correct(p, g, same, {.bias = true});
  correct(p, calm, {7, [](std::size_t) { return std::vector<Tensor>{normal({1, 2, 6, 6}, 1)}; }}, {.bias = true});
  const auto bias = [](const graph::Graph &of) {
    return float_values(dequantize(of.value(node_named(of, "last").inputs[2]).constant), "bias");
  };
  const std::vector<float> plain = bias(convert(p, nullptr)), one_far = bias(g), agreed = bias(calm);
  for (std::size_t c = 0; c < plain.size(); ++c)
    if (std::fabs(one_far[c] - plain[c]) > 2 * std::fabs(agreed[c] - plain[c]) + 1e-3f)
      fail_test("bias ", c, ": ", plain[c], ", corrected ", agreed[c], ", with one sample far away ", one_far[c]);
}

/// In the type that the configuration says.
void a_layer_without_bias_gets_one(void **) {
  const graph::Graph two =
      GraphBuilder().input("x", {1, 4, 3, 3}).conv("a", "x", "u", 4, 4).conv("b", "u", "y", 4, 4).build({"y"});
  const Samples samples = normal_samples({1, 4, 3, 3}, 8);
  for (const qdtype dtype : {QTN_INT32, QTN_FLOAT32}) {
    Config config("onnx");
    const Attrs of_bias = attrs({{"bias", dtype_name(dtype)}});
    config.set("*", &of_bias);
    const PreparedModel p = calibrated(two, config, samples);
    graph::Graph g = convert(p, nullptr);
    correct(p, g, samples, {.bias = true});
    assert_int_equal(node_named(g, "b").inputs.size(), 3);
    const graph::Value &bias = g.value(node_named(g, "b").inputs[2]);
    assert_true(bias.constant.dtype() == dtype && !bias.quantizer == (dtype == QTN_FLOAT32));
  }
}

/// What is read again stays until then, outputs stay, and constants do not count.
void values_held_at_once(void **) {
  GraphBuilder b;
  b.input("x", {-1, 2, 4, 4}).conv("a", "x", "u", 2, 3).node("Relu", "relu", {"u"}, {"v"});
  b.node("Add", "sum", {"u", "v"}, {"s"}).node("GlobalAveragePool", "mean", {"s"}, {"y"});
  const graph::Graph g = b.build({"y"}), both = b.build({"y", "v"});
  constexpr std::size_t kPlane = 16 * sizeof(float);
  for (const std::int64_t batch : {1, 5}) {
    const Tensor x = normal({batch, 2, 4, 4}, 1);
    const auto at_once = [&](const graph::Graph &of) { return walk_bytes(of, graph::Uses(of), std::span(&x, 1)); };
    assert_int_equal(at_once(g), static_cast<std::size_t>(batch) * 9 * kPlane);  // u, v and s of three channels
    assert_true(at_once(both) >= at_once(g));
  }
}

void corrections_help(void **) {
  for (const Attrs &coarse : {attrs({{"weight_reduce_range", 1}, {"weight_scheme", "per_tensor_symmetric"}}),
                              attrs({{"weight_dtype", "int4"}})}) {
    Config config("onnx");
    config.set("*", &coarse);
    const PreparedModel p = calibrated(chain(), config, kSamples);
    const auto sqnr = [&](const Corrections &which) {
      return difference(p.graph, corrected(p, which), kSamples).sqnr_db();
    };
    const double plain = sqnr({}), bias = sqnr({.bias = true});
    if (bias < plain + 0.5) fail_test("plain ", plain, " dB, bias ", bias);
    for (const Rounding rounding : {Rounding::gptq, Rounding::adaround})
      for (const bool both : {false, true}) {
        const Corrections which{.rounding = rounding, .bias = both};
        if (const double gained = sqnr(which); gained < plain + 1)
          fail_test("plain ", plain, " dB, ", which.name(), " ", gained);
      }
  }
}

/// A configuration that wants fewer integers than the type has gets no others from learning, either.
void rounding_stays_in_range(void **) {
  for (const std::int64_t bits : {3, 5, 8}) {
    Config config("onnx");
    const Attrs few = attrs({{"weight_bits", bits}});
    config.set("*", &few);
    const PreparedModel p = calibrated(chain(), config, kSamples);
    for (const Rounding rounding : {Rounding::gptq, Rounding::adaround}) {
      const graph::Graph g = corrected(p, {.rounding = rounding});
      const std::int64_t most = (std::int64_t{1} << (bits - 1)) - 1;  // of a narrow range
      std::int64_t largest = 0;
      for (const graph::Node &node : g.nodes) {
        if (node.inputs.size() < 2 || !g.value(node.inputs[1]).is_constant()) continue;
        const Tensor q = to_plain(g.value(node.inputs[1]).constant);
        for (std::int64_t i = 0; i < q.count(); ++i)
          largest = std::max<std::int64_t>(largest, std::abs(q.as<const std::int8_t>()[i]));
      }
      assert_int_equal(largest, most);
    }
  }
}

/// Training begins with the weights that calibration would have had.
void equalizes_before_training(void **) {
  Config config("onnx");
  Attrs on;
  on.set("equalize", std::int64_t{1});
  config.set("*", &on);
  const PreparedModel calibrated = prepare(chain(), config), trained = prepare(chain(), config, QTN_QAT);
  assert_true(fingerprint(calibrated.graph) == fingerprint(trained.graph));
  assert_false(fingerprint(trained.graph) == fingerprint(prepare(chain(), Config("onnx"), QTN_QAT).graph));
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {
      cmocka_unit_test(links_of_a_chain),
      cmocka_unit_test(equalizes_before_training),
      cmocka_unit_test(no_links),
      cmocka_unit_test(other_axes_are_no_channels),
      cmocka_unit_test(images_of_any_size),
      cmocka_unit_test(weights_have_equal_ranges),
      cmocka_unit_test(spread_channels_are_rescued),
      cmocka_unit_test(deep_networks_are_rescued),
      cmocka_unit_test(activations_have_equal_ranges),
      cmocka_unit_test(features_are_smoothed),
      cmocka_unit_test(constant_parts_are_absorbed),
      cmocka_unit_test(rounding_is_as_good_as_trying_all),
      cmocka_unit_test(means_are_restored),
      cmocka_unit_test(means_of_long_rows),
      cmocka_unit_test(single_samples_do_not_correct),
      cmocka_unit_test(a_layer_without_bias_gets_one),
      cmocka_unit_test(values_held_at_once),
      cmocka_unit_test(corrections_help),
      cmocka_unit_test(rounding_stays_in_range),
  };
  return cmocka_run_group_tests_name("recover", tests, nullptr, nullptr);
}
