// SPDX-License-Identifier: Apache-2.0
// Grids that are learned: compared with PyTorch, and what becomes of them.
#include "train/learned_grid.hpp"

#include <filesystem>

#include "folder.hpp"
#include "graph/evaluate.hpp"
#include "onnx/onnx.hpp"
#include "quant/calibrate.hpp"
#include "support.hpp"
#include "train/trainer.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;
using quant::Learning;

void expect_near(const std::string &what, const Tensor &got, const nlohmann::json &want, double tolerance) {
  expect_equal(got, tensor_of(want), tolerance, what);
}

/// A grid with its numbers, as a step has them.
struct Grid {
  Grid(Learning kind, const quant::ObserverSettings &settings, std::int32_t lo, std::int32_t hi, const Shape &shape)
      : learned(kind, settings, lo, hi, shape),
        scales(static_cast<std::size_t>(element_count(shape))),
        zeros(scales.size()),
        view{scales, zeros, lo, hi, Rounding::reciprocal} {}

  float &part(std::size_t i) { return learned.parts()[i].value.as<float>()[0]; }

  LearnedGrid learned;
  std::vector<float> scales;
  std::vector<std::int32_t> zeros;
  Grids view;
};

quant::ObserverSettings settings_of(qscheme scheme, qdtype dtype = QTN_UINT8, Numerics numerics = Numerics::onnx) {
  quant::ObserverSettings settings;
  settings.scheme = scheme;
  settings.dtype = dtype;
  settings.choose.numerics = numerics;
  return settings;
}

void gradients_are_those_of_pytorch(void **) {
  const auto cases = golden("training/learned_grids.json").at("modules");
  for (const auto &c : cases) {
    const auto name = c.at("name").get<std::string>();
    const Tensor x = tensor_of(c.at("x")), dy = tensor_of(c.at("dy")), scale = tensor_of(c.at("scale"));
    const auto lo = c.at("quant_min").get<std::int32_t>(), hi = c.at("quant_max").get<std::int32_t>();
    const bool affine = lo == 0;
    Grid grid(affine ? Learning::lsq_plus : Learning::lsq,
              settings_of(affine ? QTN_PER_TENSOR_AFFINE : QTN_PER_TENSOR_SYMMETRIC), lo, hi, Shape{scale.count()});
    if (!c.at("axis").is_null()) grid.view.axis = c.at("axis").get<std::size_t>();
    std::copy_n(scale.as<const float>(), scale.count(), &grid.part(0));
    if (affine) grid.part(1) = tensor_of(c.at("zero_point")).as<float>()[0];
    grid.learned.read(grid.scales, grid.zeros);
    const Tensor y(QTN_FLOAT32, x.shape()), dx(QTN_FLOAT32, x.shape());
    fake_quantize(x, grid.view, y);
    expect_near(name + " y", y, c.at("y"), 0);
    const Tensor d[] = {Tensor(QTN_FLOAT32, Shape{scale.count()}), Tensor(QTN_FLOAT32, Shape{scale.count()})};
    Scratch scratch;
    grid.learned.backward(x, grid.view, static_cast<double>(x.count()), dy, dx, d, scratch);
    expect_near(name + " dx", dx, c.at("dx"), 0);
    expect_near(name + " d_scale", d[0], c.at("d_scale"), 1e-5);
    if (affine) expect_near(name + " d_zero_point", d[1], c.at("d_zero_point"), 1e-5);
  }
  assert_int_equal(cases.size(), 7);
}

Tensor parameter_of(const Trainer &trainer, const std::string &name) {
  const auto &all = trainer.parameters();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Parameter &p) { return p.name == name; });
  if (found == all.end()) fail_test("no parameter ", name);
  return found->value;
}

Tensor state_of(const Trainer &trainer, const std::string &name) {
  for (const graph::Value &v : trainer.snapshot().values)
    if (v.name == name && v.is_constant()) return v.constant;
  return parameter_of(trainer, name);
}

struct Learned {
  const char *name, *recipe, *activations, *weights;
  std::int64_t bits;
};

quant::PreparedModel prepared(const graph::Graph &network, const Learned &l) {
  quant::Config config(l.recipe);
  Attrs learning = attrs({{"activation_learning", l.activations},
                          {"weight_learning", l.weights},
                          {"activation_bits", l.bits},
                          {"weight_bits", l.bits},
                          {"weight_narrow_range", std::int64_t{1}}});
  if (std::string_view(l.weights) == "amax") learning.set("weight_scheme", "per_tensor_symmetric");
  config.set("*", &learning);
  return quant::prepare(network, config, QTN_QAT);
}

graph::Graph network() { return onnx::load(std::filesystem::path(QTN_GOLDEN_DIR) / "training" / "qat.onnx"); }

void steps_are_those_of_pytorch(void **) {
  const auto file = golden("training/learned_grids.json");
  constexpr Learned kCases[] = {{"lsq", "onednn", "lsq", "lsq", 8},
                                {"lsq+", "onednn", "lsq+", "lsq", 4},
                                {"pact", "onednn", "pact", "lsq", 8},
                                {"amax", "nvidia", "amax", "amax", 8}};
  for (std::size_t k = 0; k < std::size(kCases); ++k) {
    const auto &c = file.at("steps").at(k);
    assert_string_equal(c.at("name").get<std::string>().c_str(), kCases[k].name);
    Attrs options;
    for (const char *key : {"lr", "momentum", "weight_decay"}) options.set(key, c.at(key).get<double>());
    Trainer trainer(prepared(network(), kCases[k]), options);
    const bool lsq = std::string_view(kCases[k].weights) == "lsq";
    trainer.set_group(lsq ? "parameter:*.scale" : "parameter:*.weight.amax",
                      attrs({{"lr_factor", c.at("of_grids").get<double>()}}));
    const Tensor x = tensor_of(c.at("x")), labels = tensor_of(c.at("labels"));
    const auto &losses = c.at("losses").at("data");
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i) % x.dim(0);
      const Tensor batch = x.select(0, at), target = labels.select(0, at);
      const Tensor *inputs[] = {&batch}, *targets[] = {&target};
      const double loss = trainer.backward(inputs, targets), want = losses.at(i).get<double>();
      trainer.update();
      if (!(std::fabs(loss - want) <= 1e-4 * (1 + want)))
        fail_test(kCases[k].name, ": loss ", i, " is ", loss, ", in PyTorch ", want);
    }
    for (const auto &[name, want] : c.at("state").items())
      expect_near(cat(kCases[k].name, " ", name), state_of(trainer, name).to_contiguous(), want, 1e-4);
    const Tensor batch = x.select(0, 0);
    const Tensor *inputs[] = {&batch};
    expect_near(cat(kCases[k].name, " output"), trainer.evaluate(inputs)[0], c.at("outputs"), 5e-3);
  }
}

void step(Trainer &trainer, std::int64_t seed) {
  const Tensor x = varied({8, 1, 8, 8}, seed), target = varied({8, 5}, seed + 1);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  trainer.backward(inputs, targets);
  trainer.update();
}

const Attrs kOptions = attrs({{"loss", "mse"}, {"lr", 0.01}});

double scale_in(const graph::Graph &g, const std::string &name, std::size_t c) {
  const auto v = std::find_if(g.values.begin(), g.values.end(), [&](const auto &value) { return value.name == name; });
  if (v == g.values.end() || !v->quantizer) fail_test("no grid of ", name);
  return v->quantizer->scales()[c];
}

void conversion_takes_what_was_learned(void **) {
  for (const char *recipe : {"onnx", "onednn", "tflite"}) {
    Trainer trainer(prepared(network(), {"", recipe, "lsq", "lsq", 8}), kOptions);
    for (std::int64_t i = 0; i < 3; ++i) step(trainer, i);
    for (const char *name : {"r2.scale", "conv3.weight.scale"}) parameter_of(trainer, name).as<float>()[0] *= 1.7f;
    const graph::Graph converted = quant::convert(*trainer.prepared(), nullptr);
    const auto expect = [&](const std::string &of, const std::string &value, std::size_t c) {
      const auto want = static_cast<double>(parameter_of(trainer, of + ".scale").as<float>()[c]);
      if (const double got = scale_in(converted, value, c); got != want)
        fail_test(recipe, ": ", of, " has scale ", got, ", learned was ", want);
    };
    for (const char *activation : {"x", "r1", "r2", "r3"}) expect(activation, activation, 0);
    for (std::size_t c = 0; c < 8; ++c) expect("conv3.weight", "conv3.weight_quantized", c);
    for (std::size_t c = 0; c < 5; ++c) expect("fc.weight", "fc.weight_quantized", c);
  }
}

/// In the narrowest type, on the scales that were learned; a file says the same.
void few_bits_are_packed(void **) {
  constexpr Learned kCases[] = {{"lsq", "onnx", "lsq", "lsq", 4},
                                {"lsq", "onednn", "lsq+", "lsq", 2},
                                {"amax", "nvidia", "amax", "amax", 4},
                                {"amax", "nvidia", "amax", "amax", 3}};
  for (const Learned &l : kCases) {
    Trainer trainer(prepared(network(), l), kOptions);
    for (std::int64_t i = 0; i < 3; ++i) step(trainer, i);
    const graph::Graph converted = quant::convert(*trainer.prepared(), nullptr);
    std::size_t weights = 0;
    for (const graph::Node &node : converted.nodes) {
      if (node.op != &ops::kConv && node.op != &ops::kGemm) continue;
      const Tensor &q = converted.value(node.inputs[1]).constant;
      assert_int_equal(q.dtype(), l.bits == 2 ? QTN_INT2 : QTN_INT4);
      ++weights;
    }
    assert_int_equal(weights, 4);
    if (std::string_view(l.weights) == "lsq")
      for (std::size_t c = 0; c < 5; ++c)
        assert_true(scale_in(converted, "fc.weight_quantized", c) ==
                    static_cast<double>(parameter_of(trainer, "fc.weight.scale").as<float>()[c]));
    const Tensor x = varied({8, 1, 8, 8}, 5);
    const Tensor *inputs[] = {&x};
    const Tensor want = trainer.evaluate(inputs)[0];
    for (const int opset : {13, 21, 25}) {
      const std::string bytes = onnx::serialize(converted, {opset});
      const graph::Graph read = onnx::parse(std::as_bytes(std::span(bytes)), "");
      assert_true(same_bits(graph::evaluate(read, std::span(&x, 1))[0], want));
    }
  }
}

void grids_begin_with_calibration(void **) {
  quant::PreparedModel p = prepared(network(), {"", "onnx", "lsq", "lsq", 8});
  const Tensor x = varied({8, 1, 8, 8}, 1);
  const Tensor *inputs[] = {&x};
  quant::calibrate(p, inputs);
  const Trainer trainer(p, kOptions);
  for (std::size_t i = 0; i < p.observers.size(); ++i) {
    const std::string name = p.graph.value(p.placement.groups[i].members[0]).name;
    assert_true(parameter_of(trainer, name + ".scale").as<float>()[0] == p.observers[i]->quantizer()->scale());
  }
}

/// As without learning. Weights as well.
void grids_begin_with_the_first_batch(void **) {
  const Tensor x = varied({8, 1, 8, 8}, 0), target = varied({8, 5}, 1);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  Trainer learning(prepared(network(), {"", "onnx", "lsq", "lsq", 8}), kOptions);
  Trainer plain(prepared(network(), {"", "onnx", "none", "none", 8}), kOptions);
  assert_true(parameter_of(learning, "r1.scale").as<float>()[0] == 0);
  assert_true(learning.backward(inputs, targets) == plain.backward(inputs, targets));
  const graph::Graph converted = quant::convert(*plain.prepared(), nullptr);
  for (const char *name : {"x", "r1", "r2", "r3"})
    assert_true(static_cast<double>(parameter_of(learning, cat(name, ".scale")).as<float>()[0]) ==
                scale_in(converted, name, 0));
}

void a_batch_that_fails_begins_nothing(void **) {
  Trainer trainer(prepared(network(), {"", "onnx", "pact", "lsq", 8}), kOptions);
  const Tensor x = varied({8, 1, 8, 8}, 0), target = varied({8, 5}, 1);
  const Tensor nan = target.clone();
  nan.as<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  const Tensor *inputs[] = {&x}, *targets[] = {&nan};
  expect_error(QTN_EINVAL, {"loss"}, [&] { trainer.backward(inputs, targets); });
  for (const char *name : {"r1.alpha", "x.beta", "conv1.weight.scale"})
    assert_true(parameter_of(trainer, name).as<float>()[0] == 0);
}

/// Scales stay positive for all that an update may bring, and what the caller writes.
void scales_stay_positive(void **) {
  Trainer trainer(prepared(network(), {"", "onednn", "lsq+", "lsq", 8}), kOptions);
  step(trainer, 0);
  const float before = parameter_of(trainer, "conv1.weight.scale").as<float>()[0];
  trainer.set(attrs({{"lr", 1e6}}));
  trainer.set_group("parameter:*t", attrs({{"frozen", std::int64_t{1}}}));
  step(trainer, 1);
  const float after = parameter_of(trainer, "conv1.weight.scale").as<float>()[0];
  if (!(after >= before / 2)) fail_test("a scale was ", before, " and is ", after);
  trainer.set(attrs({{"lr", 0.0}}));
  parameter_of(trainer, "conv1.weight.scale").as<float>()[0] = -1;
  parameter_of(trainer, "r1.scale").as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  parameter_of(trainer, "r2.zero_point").as<float>()[0] = 300;
  const Tensor x = varied({8, 1, 8, 8}, 2);
  const Tensor *inputs[] = {&x};
  trainer.evaluate(inputs);
  assert_true(parameter_of(trainer, "conv1.weight.scale").as<float>()[0] == 0x1p-23f);
  assert_true(parameter_of(trainer, "r1.scale").as<float>()[0] == 0x1p-23f);
  assert_true(parameter_of(trainer, "r2.zero_point").as<float>()[0] == 255);
}

/// To the bit, though the grids of the second trainer have never seen a batch.
void checkpoints_hold_grids(void **) {
  const TemporaryFolder folder;
  const std::string path = folder.file("learned.safetensors");
  for (const char *kind : {"lsq+", "pact"}) {
    const Learned learned{"", "onnx", kind, "lsq", 4};
    Trainer first(prepared(network(), learned), kOptions), second(prepared(network(), learned), kOptions);
    step(first, 0);
    first.save(path);
    second.load(path);
    for (std::int64_t i = 1; i < 4; ++i) {
      step(first, i);
      step(second, i);
    }
    for (std::size_t i = 0; i < first.parameters().size(); ++i)
      if (!same_bits(first.parameters()[i].value, second.parameters()[i].value))
        fail_test(kind, ": ", first.parameters()[i].name, " differs");
  }
}

/// The result of qtrainer_model, which a program may train on. A range becomes that from the first to the last integer
/// of its grid.
void a_trained_model_has_its_grids(void **) {
  for (const char *kind : {"lsq", "pact"}) {
    const float tolerance = std::string_view(kind) == "pact" ? 0.01f : 0;
    Trainer first(prepared(network(), {"", "onnx", kind, "lsq", 8}), kOptions);
    for (std::int64_t i = 0; i < 3; ++i) step(first, i);
    const Trainer second(*first.prepared(), kOptions);
    for (std::size_t i = 0; i < first.parameters().size(); ++i) {
      const Parameter &was = first.parameters()[i], &is = second.parameters()[i];
      for (std::int64_t c = 0; c < was.value.count(); ++c)
        if (const float x = was.value.as<float>()[c], y = is.value.as<float>()[c];
            !(std::fabs(x - y) <= tolerance * std::fabs(x)))
          fail_test(kind, ": ", was.name, " was ", x, " and begins at ", y);
    }
  }
}

/// More elements than are summed at once.
void threads_change_no_bit(void **) {
  const auto train = [] {
    Trainer trainer(prepared(network(), {"", "onnx", "lsq+", "lsq", 4}), kOptions);
    const Tensor x = varied({300, 1, 8, 8}, 1), target = varied({300, 5}, 2);
    const Tensor *inputs[] = {&x}, *targets[] = {&target};
    trainer.backward(inputs, targets);
    std::vector<Tensor> gradients;
    for (const Parameter &p : trainer.parameters()) gradients.push_back(p.gradient.clone());
    return gradients;
  };
  set_default_threads(1);
  const std::vector<Tensor> one = train();
  for_thread_counts([&] {
    const std::vector<Tensor> many = train();
    for (std::size_t i = 0; i < one.size(); ++i) assert_true(same_bits(one[i], many[i]));
  });
}

void rules_choose_what_is_learned(void **) {
  quant::Config config("onnx");
  const Attrs weight = attrs({{"weight_learning", "lsq"}}), activation = attrs({{"activation_learning", "pact"}}),
              none = attrs({{"weight_learning", "none"}});
  config.set("op:Conv", &weight);
  config.set("node:conv2", &none);
  config.set("tensor:r2", &activation);
  const Trainer trainer(quant::prepare(network(), config, QTN_QAT), kOptions);
  std::vector<std::string> names;
  for (std::size_t i = 12; i < trainer.parameters().size(); ++i) names.push_back(trainer.parameters()[i].name);
  const std::vector<std::string> want{"r2.alpha", "r2.beta", "conv1.weight.scale", "conv3.weight.scale"};
  if (names != want) fail_test("learned are ", names.size(), " of grids, the first ", names.empty() ? "" : names[0]);
}

/// Without rounding nothing is learned of grids, and weights are where they are without learning.
void grids_rest_without_rounding(void **) {
  const Attrs off = attrs({{"fake_quant", std::int64_t{0}}});
  Trainer learning(prepared(network(), {"", "onnx", "pact", "lsq", 8}), kOptions);
  Trainer plain(prepared(network(), {"", "onnx", "none", "none", 8}), kOptions);
  step(learning, 0);
  const Tensor alpha = parameter_of(learning, "r1.alpha").clone(),
               scale = parameter_of(learning, "fc.weight.scale").clone();
  learning.set(off);
  step(learning, 1);
  assert_true(same_bits(parameter_of(learning, "r1.alpha"), alpha));
  assert_true(same_bits(parameter_of(learning, "fc.weight.scale"), scale));
  Trainer again(prepared(network(), {"", "onnx", "pact", "lsq", 8}), kOptions);
  for (Trainer *t : {&again, &plain}) {
    t->set(off);
    step(*t, 0);
  }
  assert_true(same_bits(parameter_of(again, "fc.weight"), parameter_of(plain, "fc.weight")));
}

/// The unsigned grid of NVIDIA's toolkit reaches from 0 to amax.
void an_unsigned_amax_is_the_upper_end(void **) {
  quant::Config config("nvidia");
  const Attrs learning = attrs({{"activation_learning", "amax"}}),
              without_sign = attrs({{"activation_dtype", "uint8"}});
  config.set("*", &learning);
  config.set("tensor:r1", &without_sign);
  Trainer trainer(quant::prepare(network(), config, QTN_QAT), kOptions);
  for (std::int64_t i = 0; i < 3; ++i) step(trainer, i);
  const float amax = parameter_of(trainer, "r1.amax").as<float>()[0];
  const auto want = static_cast<double>(static_cast<float>(1.0 / static_cast<double>(255.0f / amax)));
  assert_true(scale_in(quant::convert(*trainer.prepared(), nullptr), "r1", 0) == want);
}

/// A lower end of 0 has no gradient: what was cut off at 0 before says nothing about the grid.
void a_range_from_zero_stays_there(void **) {
  Trainer trainer(prepared(network(), {"", "onnx", "pact", "none", 4}), attrs({{"loss", "mse"}, {"lr", 1.0}}));
  for (std::int64_t i = 0; i < 3; ++i) step(trainer, i);
  assert_true(parameter_of(trainer, "r1.beta").as<float>()[0] == 0);
  assert_true(parameter_of(trainer, "x.beta").as<float>()[0] < 0);
}

/// Two layers with the same weights have a grid each.
void shared_weights_have_two_grids(void **) {
  graph::Graph g = network();
  const auto first = std::find_if(g.nodes.begin(), g.nodes.end(), [](const auto &n) { return n.name == "conv3"; });
  graph::Node twice = *first;
  twice.name = "again";
  graph::Value y = g.value(first->outputs[0]);
  y.name = "again.out";
  twice.outputs = {g.add_value(y)};
  g.outputs.push_back(twice.outputs[0]);
  g.nodes.insert(first + 1, twice);
  const Trainer trainer(prepared(g, {"", "onnx", "none", "lsq", 8}), kOptions);
  assert_true(parameter_of(trainer, "conv3.weight.scale").count() == 8);
  assert_true(parameter_of(trainer, "conv3.weight.scale_2").count() == 8);
}

void given_grids_are_not_learned(void **) {
  quant::Config config("onnx");
  const Attrs learning = attrs({{"activation_learning", "lsq"}});
  const Attrs given = attrs({{"observer", "fixed"}, {"min", 0.0}, {"max", 4.0}});
  config.set("*", &learning);
  config.set("tensor:r1", &given);
  Trainer trainer(quant::prepare(network(), config, QTN_QAT), kOptions);
  step(trainer, 0);
  for (const Parameter &p : trainer.parameters()) assert_false(p.name == "r1.scale");
  assert_true(parameter_of(trainer, "r2.scale").as<float>()[0] > 0);
  assert_true(scale_in(quant::convert(*trainer.prepared(), nullptr), "r1", 0) == static_cast<double>(4.0f / 255));
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(gradients_are_those_of_pytorch),
      cmocka_unit_test(steps_are_those_of_pytorch),
      cmocka_unit_test(conversion_takes_what_was_learned),
      cmocka_unit_test(few_bits_are_packed),
      cmocka_unit_test(grids_begin_with_calibration),
      cmocka_unit_test(grids_begin_with_the_first_batch),
      cmocka_unit_test(a_batch_that_fails_begins_nothing),
      cmocka_unit_test(scales_stay_positive),
      cmocka_unit_test(checkpoints_hold_grids),
      cmocka_unit_test(a_trained_model_has_its_grids),
      cmocka_unit_test(threads_change_no_bit),
      cmocka_unit_test(rules_choose_what_is_learned),
      cmocka_unit_test(grids_rest_without_rounding),
      cmocka_unit_test(an_unsigned_amax_is_the_upper_end),
      cmocka_unit_test(a_range_from_zero_stays_there),
      cmocka_unit_test(shared_weights_have_two_grids),
      cmocka_unit_test(given_grids_are_not_learned),
  };
  return cmocka_run_group_tests_name("learned_grid", tests, nullptr, nullptr);
}
