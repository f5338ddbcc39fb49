// SPDX-License-Identifier: Apache-2.0
// Training graphs that bytes describe, in float or on grids: a trainer either refuses, or answers what its model
// answers in a session.
#include <algorithm>
#include <cmath>

#include "growing.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

constexpr const char *kLosses[] = {"mse", "huber", "mse", "cross_entropy"};
constexpr const char *kOptimizers[] = {"sgd", "adam", "adamw"};
constexpr const char *kLearning[] = {"none", "lsq", "lsq+", "pact"};

struct Settings {
  Attrs attrs;
  std::string loss;
  bool has_labels = false, has_answers = false;  ///< targets: labels, another model's outputs, or one number for each
  std::int64_t class_axis = 1, ignored = -100;
};

Settings trainer_settings(Dice &dice) {
  Settings settings;
  settings.attrs = make<Attrs>(qattrs_create);
  qattrs *attrs = settings.attrs.get();
  settings.loss = kLosses[dice.next() % std::size(kLosses)];
  must(qattrs_set_string(attrs, "optimizer", kOptimizers[dice.next() % std::size(kOptimizers)]), "optimizer");
  must(qattrs_set_float(attrs, "lr", 0.01), "lr");
  must(qattrs_set_int(attrs, "threads", 1), "threads");
  if (dice.next() % 4 == 0) must(qattrs_set_float(attrs, "clip_norm", 0.5), "clip_norm");
  if (dice.next() % 6 == 0) settings.loss = dice.next() % 2 == 0 ? "distillation" : "cross_entropy";
  must(qattrs_set_string(attrs, "loss", settings.loss.c_str()), "loss");
  if (settings.loss != "cross_entropy" && settings.loss != "distillation") return settings;
  if (dice.next() % 2 == 0) {
    settings.class_axis = dice.next() % 8 == 0 ? 3 : dice.next() % 2 == 0 ? -1 : 2;
    must(qattrs_set_int(attrs, "class_axis", settings.class_axis), "class_axis");
  }
  settings.has_labels = dice.next() % 4 != 0;
  settings.has_answers = settings.loss == "distillation";
  if (settings.has_answers) {
    if (settings.has_labels) must(qattrs_set_float(attrs, "alpha", dice.next() % 5 / 4.0), "alpha");
    return settings;
  }
  if (dice.next() % 2 == 0) {
    settings.ignored = static_cast<std::int64_t>(dice.next() % 4) - 1;
    must(qattrs_set_int(attrs, "ignore_index", settings.ignored), "ignore_index");
  }
  if (dice.next() % 3 == 0) must(qattrs_set_float(attrs, "label_smoothing", 0.25), "label_smoothing");
  return settings;
}

/// Labels for an output: mostly classes, some that do not count, seldom one that is no class.
Tensor labels(const qtensor *output, const Settings &settings, Dice &dice) {
  std::vector<std::int64_t> shape = shape_of(output);
  const std::int64_t axis =
      settings.class_axis < 0 ? settings.class_axis + static_cast<std::int64_t>(shape.size()) : settings.class_axis;
  std::int64_t classes = 1;
  if (axis >= 0 && axis < static_cast<std::int64_t>(shape.size())) {
    classes = std::max<std::int64_t>(1, shape[static_cast<std::size_t>(axis)]);
    shape.erase(shape.begin() + axis);
  }
  std::size_t count = 1;
  for (const std::int64_t dim : shape) count *= static_cast<std::size_t>(dim);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(dice.next() % 8 == 0      ? settings.ignored
                     : dice.next() % 1024 == 0 ? -7
                                               : static_cast<std::int64_t>(dice.next()) % classes);
  const bool wide = dice.next() % 2 == 0;
  const std::vector<std::int32_t> narrow(values.begin(), values.end());
  return make<Tensor>(qtensor_create, wide ? QTN_INT64 : QTN_INT32, shape.data(), shape.size(), nullptr,
                      wide ? static_cast<const void *>(values.data()) : narrow.data(),
                      wide ? values.size() * sizeof(std::int64_t) : narrow.size() * sizeof(std::int32_t));
}

struct Batch {
  std::vector<Tensor> inputs, targets;
  std::vector<const qtensor *> items, wanted;
};

qstatus step(double *loss, qtrainer *t, const Batch &b) {
  return qtrainer_step(loss, t, b.items.data(), b.items.size(), b.wanted.data(), b.wanted.size());
}

qstatus backward(double *loss, qtrainer *t, const Batch &b) {
  return qtrainer_backward(loss, t, b.items.data(), b.items.size(), b.wanted.data(), b.wanted.size());
}

std::vector<Tensor> parameters(qtrainer *t) {
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < qtrainer_parameter_count(t); ++i)
    result.push_back(make<Tensor>(qtrainer_parameter, t, i));
  return result;
}

/// Two halves make a step, on two threads as on one; and a checkpoint goes on where it was written.
void check_halves(const qmodel *m, const qattrs *settings, qtrainer *whole, const Batch &batch) {
  must(qattrs_set_int(const_cast<qattrs *>(settings), "threads", 2), "threads");
  const Trainer halves = make<Trainer>(qtrainer_create, m, settings);
  require(halves != nullptr, std::string("a second trainer: ") + qerror_message());
  for (int steps = 0; steps < 2; ++steps) {
    if (steps == 1) {
      const Blob saved = make<Blob>(qtrainer_save_bytes, whole);
      require(saved != nullptr, std::string("saving: ") + qerror_message());
      must(qtrainer_load_bytes(halves.get(), qblob_data(saved.get()), qblob_size(saved.get())), "loading");
    }
    double loss = 0, other = 0;
    const qstatus first = step(&loss, whole, batch), second = backward(&other, halves.get(), batch);
    stop_without_memory(first);
    stop_without_memory(second);
    require(first == second, std::string("a step and its halves: ") + qstatus_name(first) + " and " +
                                 qstatus_name(second) + ": " + qerror_message());
    if (first != QTN_OK) return;
    must(qtrainer_update(halves.get()), "an update");
    require(loss == other, "a step and its halves: losses " + std::to_string(loss) + " and " + std::to_string(other));
    const std::vector<Tensor> a = parameters(whole), b = parameters(halves.get());
    require(a.size() == b.size(), "a step and its halves: other parameters");
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::string difference;
      if (!same_bits(a[i].get(), b[i].get(), &difference))
        fail(std::string("a step and its halves: ") + qtrainer_parameter_name(whole, i) + ": " + difference);
    }
  }
}

/// What has a derivative everywhere, and one that does not change fast.
constexpr const char *kSmooth[] = {"Add",    "Attention", "AveragePool", "Concat",  "Conv",     "ConvTranspose",
                                   "Expand", "Flatten",   "GRU",         "Gather",  "Gelu",     "Gemm",
                                   "LSTM",   "MatMul",    "Mul",         "RNN",     "Reshape",  "Sigmoid",
                                   "Slice",  "Softmax",   "Split",       "Squeeze", "Sub",      "Tanh",
                                   "Erf",    "Transpose", "Unsqueeze",   "Pad",     "Identity", "GlobalAveragePool",
                                   "Swish",  "ReduceMean"};

/// The gradient of a parameter is what the loss changes by when the parameter moves along it.
void check_gradients(qtrainer *t, const Batch &batch) {
  double loss = 0;
  if (!good(backward(&loss, t, batch))) return;
  const std::size_t count = qtrainer_parameter_count(t);
  std::vector<std::vector<float>> gradients;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor gradient = make<Tensor>(qtrainer_gradient, t, i);
    const auto *data = static_cast<const float *>(qtensor_data(gradient.get()));
    gradients.emplace_back(data, data + qtensor_numel(gradient.get()));
  }
  const std::vector<Tensor> all = parameters(t);
  for (std::size_t i = 0; i < count; ++i) {
    double square = 0;
    for (const float g : gradients[i]) square += static_cast<double>(g) * g;
    const double norm = std::sqrt(square);
    if (norm < 1e-2 || norm > 1e2) continue;  // else the loss is rounded too much
    void *data = nullptr;
    must(qtensor_data_mut(&data, all[i].get()), "a parameter");
    auto *values = static_cast<float *>(data);
    const std::vector<float> before(values, values + gradients[i].size());
    const auto moved = [&](double by) {
      for (std::size_t k = 0; k < before.size(); ++k)
        values[k] = static_cast<float>(before[k] + by * gradients[i][k] / norm);
      double there = 0;
      const bool went_well = good(backward(&there, t, batch));
      std::copy(before.begin(), before.end(), values);
      return went_well ? there : NAN;
    };
    const auto slope = [&](double by) { return (moved(by) - moved(-by)) / (2 * by); };
    const double near = slope(1e-2), far = slope(2e-2);
    // Where two lengths disagree, the loss is no line there.
    if (!(std::abs(near - far) <= 0.02 * std::abs(near) + 1e-3)) continue;
    const auto agrees = [&](double other) {
      return std::abs(near - other) <= 0.1 * std::max(std::abs(near), other) + 1e-2;
    };
    // They may agree by chance on a loss that is chaotic, and then not with a tenth of the length.
    require(agrees(norm) || !agrees(slope(1e-3)), std::string("gradient of ") + qtrainer_parameter_name(t, i) +
                                                      ": its norm is " + std::to_string(norm) +
                                                      ", and the loss changes by " + std::to_string(near));
  }
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
  const Settings settings = trainer_settings(dice);
  const qmodel *trained = on_grids ? grids.get() : model.get();
  const Trainer trainer = make<Trainer>(qtrainer_create, trained, settings.attrs.get());
  if (!trainer) return;
  Batch batch;
  batch.inputs = growing.inputs();
  for (const Tensor &t : batch.inputs) batch.items.push_back(t.get());
  const auto add_target = [&](Tensor t) {
    batch.targets.push_back(std::move(t));
    batch.wanted.push_back(batch.targets.back().get());
  };
  for (const NamedTensor &output : graph.outputs) {
    if (!settings.has_labels || settings.has_answers)
      add_target(filled(qtensor_dtype(output.tensor), shape_of(output.tensor), dice.next()));
    if (settings.has_labels) add_target(labels(output.tensor, settings, dice));
  }
  for (int steps = 0; steps < 2; ++steps) {
    double loss = 0;
    if (!good(step(&loss, trainer.get(), batch))) break;
    require(std::isfinite(loss), "a step with a loss that is not finite");
  }
  compare(trained, trainer.get(), batch.inputs);
  if (dice.next() % 4 == 0) {
    const Trainer anew = make<Trainer>(qtrainer_create, trained, settings.attrs.get());
    if (anew) check_halves(trained, settings.attrs.get(), anew.get(), batch);
  }
  if (!on_grids && settings.loss != "huber" && growing.consists_of(kSmooth, 10)) {
    const Trainer anew = make<Trainer>(qtrainer_create, trained, settings.attrs.get());
    if (anew) check_gradients(anew.get(), batch);
  }
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
