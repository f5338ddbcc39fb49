// SPDX-License-Identifier: Apache-2.0
// Settings of parameters by selector.
#include "train/groups.hpp"

#include <filesystem>

#include "folder.hpp"
#include "io/safetensors.hpp"
#include "onnx/onnx.hpp"
#include "support.hpp"
#include "train/trainer.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

using Names = std::vector<std::string>;

const Attrs kFrozen = attrs({{"frozen", std::int64_t{1}}}), kFree = attrs({{"frozen", std::int64_t{0}}});
const Attrs kOptions = attrs({{"loss", "mse"}, {"lr", 0.0625}, {"weight_decay", 0.125}});

/// conv1, bn1, relu1 and so on, then fc.
graph::Graph network() { return onnx::load(std::filesystem::path(QTN_GOLDEN_DIR) / "training" / "qat.onnx"); }

void backward(Trainer &trainer, std::int64_t seed = 0) {
  const Tensor x = varied({8, 1, 8, 8}, seed), target = varied({8, 5}, seed + 1);
  const Tensor *inputs[] = {&x}, *targets[] = {&target};
  trainer.backward(inputs, targets);
}

const Parameter &parameter_of(const Trainer &trainer, const std::string &name) {
  for (const Parameter &p : trainer.parameters())
    if (p.name == name) return p;
  return trainer.parameters().at(trainer.parameters().size());
}

/// What one step of plain SGD makes of a parameter.
void expect_moved(const std::string &selector, const Attrs &settings, const std::string &name, float rate,
                  float decay) {
  Trainer trainer(network(), kOptions);
  trainer.set_group(selector, settings);
  const Parameter &p = parameter_of(trainer, name);
  const Tensor before = p.value.clone();
  backward(trainer);
  trainer.update();
  for (std::int64_t i = 0; i < before.count(); ++i) {
    const float was = before.as<const float>()[i];
    const float want = was - rate * (p.gradient.as<const float>()[i] + decay * was);
    if (const float got = p.value.as<const float>()[i]; got != want)
      fail_test(selector, ": ", name, " ", i, " is ", got, ", not ", want);
  }
}

void rates_and_decay_are_those_of_the_group(void **) {
  expect_moved("node:conv2", attrs({{"lr_factor", 0.5}}), "conv2.weight", 0.03125f, 0.125f);
  expect_moved("node:conv2", attrs({{"lr_factor", 0.5}}), "conv3.weight", 0.0625f, 0.125f);
  expect_moved("op:Conv", attrs({{"weight_decay", 0.25}}), "conv2.weight", 0.0625f, 0.25f);
  expect_moved("op:Conv", attrs({{"weight_decay", 0.0}}), "conv2.weight", 0.0625f, 0);
  expect_moved("op:Conv", attrs({{"lr_factor", 1.0}}), "conv2.bias", 0.0625f, 0);
  expect_moved("*", attrs({{"weight_decay", 0.25}}), "bn1.bias", 0.0625f, 0.25f);
}

void the_most_specific_wins(void **) {
  const Attrs half = attrs({{"lr_factor", 0.5}}), quarter = attrs({{"lr_factor", 0.25}});
  for (const bool specific_first : {true, false}) {
    Trainer trainer(network(), kOptions);
    if (specific_first) trainer.set_group("parameter:conv1.*", quarter);
    trainer.set_group("*", half);
    trainer.set_group("op:Conv", attrs({{"weight_decay", 0.25}}));
    if (!specific_first) trainer.set_group("parameter:conv1.*", quarter);
    assert_true(parameter_of(trainer, "conv1.weight").rate_factor == 0.25f);
    assert_true(parameter_of(trainer, "conv1.weight").weight_decay == 0.25);
    assert_true(parameter_of(trainer, "conv3.weight").rate_factor == 0.5f);
    trainer.set_group("*", quarter);
    assert_true(parameter_of(trainer, "conv3.weight").rate_factor == 0.25f);
  }
}

quant::PreparedModel learning() {
  quant::Config config("onnx");
  const Attrs settings = attrs({{"activation_learning", "lsq+"}, {"weight_learning", "lsq"}});
  config.set("*", &settings);
  return quant::prepare(network(), config, QTN_QAT);
}

void selectors_choose_parameters(void **) {
  const auto expect = [](const char *selector, const Names &want) {
    Trainer trainer(learning(), kOptions);
    trainer.set_group(selector, kFrozen);
    Names got;
    for (const Parameter &p : trainer.parameters())
      if (p.frozen) got.push_back(p.name);
    if (got != want) fail_test(selector, " chooses ", got.size(), " parameters, the first ", got[0]);
  };
  expect("node:conv1", {"conv1.weight", "conv1.weight.scale"});
  expect("node:bn1", {"bn1.weight", "bn1.bias"});
  expect("op:Gemm", {"fc.weight", "fc.bias", "fc.weight.scale"});
  expect("name:?n2", {"bn2.weight", "bn2.bias"});
  expect("tensor:r1", {"r1.scale", "r1.zero_point"});
  expect("parameter:*.zero_point", {"x.zero_point", "r1.zero_point", "r2.zero_point", "r3.zero_point"});
  expect("parameter:fc.bias", {"fc.bias"});
  Trainer trainer(learning(), kOptions);
  trainer.set_group("*", kFrozen);
  for (const Parameter &p : trainer.parameters()) assert_true(p.frozen);
}

Tensor state_of(const Trainer &trainer, const std::string &name) {
  const TemporaryFolder folder;
  trainer.save(folder.file("state"));
  const io::TensorFile file = io::open_safetensors(folder.file("state"));
  for (const io::StoredTensor &t : file.tensors())
    if (t.name == name) return file.read(t).clone();
  return {};
}

/// Others get the gradients that they have without that.
void what_is_frozen_stays(void **) {
  Attrs options = kOptions;
  options.set("momentum", 0.5);
  for (const char *selector : {"node:conv1", "name:bn*", "parameter:*.scale", "tensor:r2"}) {
    Trainer trainer(learning(), options), free(learning(), options);
    for (Trainer *t : {&trainer, &free}) {
      backward(*t);
      t->update();
    }
    trainer.set_group(selector, kFrozen);
    std::map<std::string, Tensor> values, momenta;
    for (const Parameter &p : trainer.parameters()) {
      values[p.name] = p.value.clone();
      momenta[p.name] = state_of(trainer, cat("optimizer/", p.name, ".momentum_buffer"));
    }
    for (Trainer *t : {&trainer, &free}) backward(*t, 5);
    for (std::size_t i = 0; i < free.parameters().size(); ++i) {
      const Parameter &p = trainer.parameters()[i];
      const auto &gradient = float_values(p.gradient, "gradient");
      if (!p.frozen && !same_bits(p.gradient, free.parameters()[i].gradient))
        fail_test(selector, " frozen changes the gradient of ", p.name);
      if (p.frozen && std::any_of(gradient.begin(), gradient.end(), [](float g) { return g != 0; }))
        fail_test(selector, " frozen: ", p.name, " has a gradient");
    }
    trainer.update();
    std::size_t moved = 0;
    for (const Parameter &p : trainer.parameters()) {
      const bool stays = same_bits(p.value, values[p.name]);
      if (p.frozen &&
          (!stays || !same_bits(state_of(trainer, cat("optimizer/", p.name, ".momentum_buffer")), momenta[p.name])))
        fail_test(selector, " frozen: ", p.name, " moved");
      moved += !stays;
    }
    assert_true(moved > 5);
    trainer.set_group(selector, kFree);
    backward(trainer, 9);
    trainer.update();
    for (const Parameter &p : trainer.parameters()) assert_false(p.frozen);
  }
}

void all_may_be_frozen(void **) {
  Trainer trainer(learning(), kOptions);
  backward(trainer);
  trainer.update();
  trainer.set_group("*", kFrozen);
  const Tensor before = parameter_of(trainer, "fc.weight").value.clone();
  backward(trainer);
  trainer.update();
  assert_true(same_bits(parameter_of(trainer, "fc.weight").value, before));
}

void errors_change_nothing(void **) {
  Trainer trainer(network(), kOptions);
  const auto refused = [&](const char *selector, const Attrs &settings, const Texts &texts) {
    expect_error(QTN_EINVAL, texts, [&] { trainer.set_group(selector, settings); });
    for (const Parameter &p : trainer.parameters()) assert_false(p.frozen);
  };
  refused("node:conv9", kFrozen, {"\"node:conv9\" matches no parameter"});
  refused("tensor:r1", kFrozen, {"\"tensor:r1\" matches no parameter"});
  refused("conv1", kFrozen, {"\"conv1\" is none of", "parameter:GLOB"});
  refused("*", attrs({{"frozen", std::int64_t{1}}, {"lr_factor", -1.0}}), {"lr_factor -1"});
  refused("*", attrs({{"frozen", std::int64_t{1}}, {"weight_decay", -1.0}}), {"weight_decay -1"});
  refused("*", attrs({{"frozen", std::int64_t{2}}}), {"frozen is 2"});
  refused("*", attrs({{"frozen", std::int64_t{1}}, {"momentum", 0.5}}), {"momentum", "lr_factor weight_decay frozen"});
  backward(trainer);
  expect_error(QTN_ESTATE, {"between backward and update"}, [&] { trainer.set_group("*", kFrozen); });
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(rates_and_decay_are_those_of_the_group),
      cmocka_unit_test(the_most_specific_wins),
      cmocka_unit_test(selectors_choose_parameters),
      cmocka_unit_test(what_is_frozen_stays),
      cmocka_unit_test(all_may_be_frozen),
      cmocka_unit_test(errors_change_nothing),
  };
  return cmocka_run_group_tests_name("groups", tests, nullptr, nullptr);
}
