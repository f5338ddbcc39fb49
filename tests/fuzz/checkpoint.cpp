// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a trainer: any bytes, and checkpoints that were changed. One that is refused leaves the trainer as it
// was; one that is taken is written again the same, and training goes on.
#include "edits.hpp"
#include "network.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

constexpr std::size_t kKinds = 6;

struct Training {
  Trainer trainer;
  std::vector<std::uint8_t> saved;
};

Model prepared(const qmodel *network, const char *learning) {
  const Config config = make<Config>(qconfig_create, "onnx");
  const Attrs attrs = make<Attrs>(qattrs_create);
  if (std::string(learning) == "fused")
    must(qattrs_set_int(attrs.get(), "fused_fake_quant", 1), "fused_fake_quant");
  else
    must(qattrs_set_string(attrs.get(), "activation_learning", learning), "activation_learning");
  must(qconfig_set(config.get(), "*", attrs.get()), "configuration");
  Model model = make<Model>(qmodel_prepare, network, config.get(), QTN_QAT);
  require(model != nullptr, std::string("preparing: ") + qerror_message());
  return model;
}

qstatus step(qtrainer *trainer) {
  const Tensor x = network_input(2, 5), y = filled(QTN_FLOAT32, {2, 4}, 6);
  const qtensor *input = x.get(), *target = y.get();
  double loss = 0;
  return qtrainer_step(&loss, trainer, &input, 1, &target, 1);
}

Training begin(const qmodel *network, std::size_t kind, const File &file) {
  constexpr const char *kOptimizers[] = {"sgd", "adam", "adamw", "adam", "sgd", "adamw"};
  constexpr const char *kLearning[] = {"", "none", "lsq", "lsq+", "pact", "fused"};
  const Attrs attrs = make<Attrs>(qattrs_create);
  must(qattrs_set_string(attrs.get(), "loss", "mse"), "loss");
  must(qattrs_set_string(attrs.get(), "optimizer", kOptimizers[kind]), "optimizer");
  if (kind == 0) must(qattrs_set_float(attrs.get(), "momentum", 0.9), "momentum");
  must(qattrs_set_int(attrs.get(), "threads", 1), "threads");
  const Model model = kind == 0 ? nullptr : prepared(network, kLearning[kind]);
  Training t;
  t.trainer = make<Trainer>(qtrainer_create, model ? model.get() : network, attrs.get());
  require(t.trainer != nullptr, std::string("a trainer: ") + qerror_message());
  must(step(t.trainer.get()), "a step");
  must(qtrainer_save(t.trainer.get(), file.path()), "saving");
  t.saved = file.read();
  return t;
}

void test(const std::uint8_t *data, std::size_t size) {
  static const File file("x.safetensors"), copy("copy.safetensors");
  static const Model network = small_network();
  static Training known[kKinds];
  if (size == 0) return;
  const std::size_t kind = data[0] % kKinds;
  Training &t = known[kind];
  if (!t.trainer) t = begin(network.get(), kind, file);

  file.write(t.saved);
  must(qtrainer_load(t.trainer.get(), file.path()), "loading what was saved");
  const std::vector<std::uint8_t> content = edited(t.saved, data + 1, size - 1);
  file.write(content);
  const bool loaded = good(qtrainer_load(t.trainer.get(), file.path()));
  must(qtrainer_save(t.trainer.get(), copy.path()), "saving again");
  const std::vector<std::uint8_t> again = copy.read();
  if (!loaded) {
    require(again == t.saved, "a checkpoint that is refused changes the trainer");
    return;
  }
  file.write(again);
  must(qtrainer_load(t.trainer.get(), file.path()), "loading what was loaded and saved");
  must(qtrainer_save(t.trainer.get(), copy.path()), "saving once more");
  require(copy.read() == again, "loaded and saved twice, it is another file");

  std::vector<Tensor> inputs;
  inputs.push_back(network_input(1, 3));
  const qtensor *input = inputs[0].get();
  qtensor *output = nullptr;
  if (good(qtrainer_evaluate(&output, 1, t.trainer.get(), &input, 1))) qtensor_free(output);
  if (good(step(t.trainer.get()))) {
    const Model model = make<Model>(qtrainer_model, t.trainer.get());
    const Model converted = kind == 0 || !model ? nullptr : make<Model>(qmodel_convert, model.get(), nullptr);
    Dice dice(size);
    if (converted) check_runs(converted.get(), inputs, dice);
  }
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{512} << 20, fuzz::test)
