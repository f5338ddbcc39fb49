// SPDX-License-Identifier: Apache-2.0
// Training graphs that bytes describe, in float or on grids: a trainer either refuses, or answers what its model
// answers in a session.
#include <cmath>

#include "growing.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

constexpr const char *kLosses[] = {"mse", "huber", "mse", "cross_entropy"};
constexpr const char *kOptimizers[] = {"sgd", "adam", "adamw"};
constexpr const char *kLearning[] = {"none", "lsq", "lsq+", "pact"};

Attrs trainer_settings(Dice &dice) {
  Attrs attrs = make<Attrs>(qattrs_create);
  must(qattrs_set_string(attrs.get(), "loss", kLosses[dice.next() % std::size(kLosses)]), "loss");
  must(qattrs_set_string(attrs.get(), "optimizer", kOptimizers[dice.next() % std::size(kOptimizers)]), "optimizer");
  must(qattrs_set_float(attrs.get(), "lr", 0.01), "lr");
  must(qattrs_set_int(attrs.get(), "threads", 1), "threads");
  if (dice.next() % 4 == 0) must(qattrs_set_float(attrs.get(), "clip_norm", 0.5), "clip_norm");
  return attrs;
}

Model prepared(const qmodel *m, Dice &dice) {
  const Config config = make<Config>(qconfig_create, dice.next() % 2 == 0 ? "onnx" : "fbgemm");
  const Attrs attrs = make<Attrs>(qattrs_create);
  if (dice.next() % 5 == 0)
    must(qattrs_set_int(attrs.get(), "fused_fake_quant", 1), "fused_fake_quant");
  else
    must(qattrs_set_string(attrs.get(), "activation_learning", kLearning[dice.next() % std::size(kLearning)]),
         "learning");
  if (dice.next() % 3 == 0) must(qattrs_set_int(attrs.get(), "weight_bits", 2 + dice.next() % 7), "weight_bits");
  good(qconfig_set(config.get(), "*", attrs.get()));
  return make<Model>(qmodel_prepare, m, config.get(), QTN_QAT);
}

void compare(const qmodel *m, qtrainer *trainer, const std::vector<Tensor> &inputs) {
  std::vector<const qtensor *> items;
  for (const Tensor &t : inputs) items.push_back(t.get());
  std::vector<qtensor *> outputs(qmodel_output_count(m));
  const bool answered = good(qtrainer_evaluate(outputs.data(), outputs.size(), trainer, items.data(), items.size()));
  std::vector<Tensor> owned;
  for (qtensor *output : outputs) owned.emplace_back(output);
  const Model now = make<Model>(qtrainer_model, trainer);
  if (!now || !answered) return;
  Model runs = make<Model>(qmodel_convert, now.get(), nullptr);
  const Answer want = run(runs ? runs.get() : now.get(), "native", inputs);
  if (want.status != QTN_OK) return;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    std::string difference;
    if (!same_bits(owned[i].get(), want.outputs[i].get(), &difference))
      fail("evaluating and running: output " + std::to_string(i) + ": " + difference);
  }
}

void test(const std::uint8_t *data, std::size_t size) {
  Bytes bytes(data, size);
  Growing growing(bytes);
  const Model model = growing.model();
  if (!model) return;
  const OnnxGraph &graph = growing.graph();
  Dice dice(seed_of(data, size));
  const bool on_grids = dice.next() % 2 == 0;
  const Model grids = on_grids ? prepared(model.get(), dice) : nullptr;
  if (on_grids && !grids) return;
  const Attrs settings = trainer_settings(dice);
  const qmodel *trained = on_grids ? grids.get() : model.get();
  const Trainer trainer = make<Trainer>(qtrainer_create, trained, settings.get());
  if (!trainer) return;
  const std::vector<Tensor> inputs = growing.inputs();
  std::vector<const qtensor *> items, targets;
  for (const Tensor &t : inputs) items.push_back(t.get());
  std::vector<Tensor> wanted;
  for (const NamedTensor &output : graph.outputs) {
    wanted.push_back(filled(qtensor_dtype(output.tensor), shape_of(output.tensor), dice.next()));
    targets.push_back(wanted.back().get());
  }
  for (int steps = 0; steps < 2; ++steps) {
    double loss = 0;
    if (!good(qtrainer_step(&loss, trainer.get(), items.data(), items.size(), targets.data(), targets.size()))) break;
    require(std::isfinite(loss), "a step with a loss that is not finite");
  }
  compare(trained, trainer.get(), inputs);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
