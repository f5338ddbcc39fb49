// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX file.
#include "oracle.hpp"

namespace fuzz {
namespace {

/// Two steps from a model, in float or on grids, end well or in an error. What comes of them runs, or says why not.
void check_training(const qmodel *m, Dice &dice) {
  const std::optional<std::vector<Tensor>> inputs = inputs_of(m, dice);
  if (!inputs) return;
  const Answer answer = run(m, "reference", *inputs);
  if (answer.status != QTN_OK) return;
  const Config config = make<Config>(qconfig_create, "onnx");
  const Model grids = dice.next() % 2 == 0 ? make<Model>(qmodel_prepare, m, config.get(), QTN_QAT) : nullptr;
  const Attrs settings = make<Attrs>(qattrs_create);
  must(qattrs_set_string(settings.get(), "loss", "mse"), "loss");
  must(qattrs_set_int(settings.get(), "threads", 1), "threads");
  const Trainer trainer = make<Trainer>(qtrainer_create, grids ? grids.get() : m, settings.get());
  if (!trainer) return;
  std::vector<Tensor> targets;
  std::vector<const qtensor *> items, wanted;
  for (const Tensor &x : *inputs) items.push_back(x.get());
  for (const Tensor &y : answer.outputs) {
    targets.push_back(filled(qtensor_dtype(y.get()), shape_of(y.get()), dice.next()));
    wanted.push_back(targets.back().get());
  }
  double loss = 0;
  for (int steps = 0; steps < 2; ++steps)
    if (!good(qtrainer_step(&loss, trainer.get(), items.data(), items.size(), wanted.data(), wanted.size()))) return;
  if (const Model trained = make<Model>(qtrainer_model, trainer.get())) run(trained.get(), "native", *inputs);
}

void test(const std::uint8_t *data, std::size_t size) {
  const Model model = make<Model>(qmodel_load_bytes, data, size);
  Dice dice(seed_of(data, size));
  if (!model) return;
  check_model(model.get(), dice);
  if (dice.next() % 4 == 0) check_training(model.get(), dice);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{64} << 20, fuzz::test)
