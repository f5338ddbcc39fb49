// SPDX-License-Identifier: Apache-2.0
#include "train/quantize_qat.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "quant/calibrate.hpp"
#include "quant/rows.hpp"
#include "train/trainer.hpp"

namespace qtn::train {
namespace {

struct Recipe {
  std::size_t epochs, calibration_batches;
  std::size_t moving;  ///< steps before running statistics stay
  Attrs trainer;
};

std::size_t take_count(Attrs &attrs, const char *key, std::int64_t fallback, std::int64_t least) {
  const std::int64_t count = attrs.get_int(key, fallback);
  if (count < least) fail(QTN_EINVAL, "quantize_qat: ", key, " ", count, " is below ", least);
  attrs.erase(key);
  return static_cast<std::size_t>(count);
}

/// Before minutes of work.
void check_keys(const Attrs &attrs) {
  if (attrs.has("total_steps")) fail(QTN_EINVAL, "quantize_qat: total_steps follows from epochs and batches");
  std::vector<AttrSpec> specs = {{"epochs", AttrSpec::kInt}, {"calibration_batches", AttrSpec::kInt}};
  for (const AttrSpec &spec : trainer_options())
    if (spec.name != "total_steps") specs.push_back(spec);
  attrs.check(specs, "quantize_qat");
}

/// Fills in what `attrs` leaves open; values, the trainer checks.
Recipe recipe_of(Attrs attrs, std::size_t batches) {
  check_keys(attrs);
  Recipe recipe{take_count(attrs, "epochs", 5, 1), take_count(attrs, "calibration_batches", 16, 0), 0, {}};
  if (batches > 0 && recipe.epochs > std::size_t{INT64_MAX} / batches)
    fail(QTN_EINVAL, "quantize_qat: epochs is ", recipe.epochs, ", too many for ", batches, " batches");
  const std::size_t steps = recipe.epochs * batches;
  recipe.moving = attrs.has("freeze_bn") ? steps : steps - std::max(steps / 5, recipe.epochs > 1 ? batches : 0);
  const auto otherwise = [&attrs](const char *key, Attr value) {
    if (!attrs.has(key)) attrs.set(key, std::move(value));
  };
  otherwise("optimizer", "adamw");
  const bool sgd = attrs.get_string("optimizer", "") == "sgd";
  otherwise("lr", sgd ? 0.01 : 0.0005);
  if (sgd) otherwise("momentum", 0.9);
  otherwise("schedule", "cosine");
  if (attrs.get_string("schedule", "") == "cosine") otherwise("min_lr", attrs.get_float("lr", 0) / 100);
  attrs.set("total_steps", static_cast<std::int64_t>(steps));
  recipe.trainer = std::move(attrs);
  return recipe;
}

double step(Trainer &trainer, const Batch &batch) {
  std::vector<const Tensor *> inputs, targets;
  for (const Tensor &t : batch.inputs) inputs.push_back(&t);
  for (const Tensor &t : batch.targets) targets.push_back(&t);
  const double loss = trainer.backward(inputs, targets);
  trainer.update();
  return loss;
}

/// Biases that go into a normalization are rounded once its statistics stay.
void freeze(Trainer &trainer) {
  Attrs frozen;
  frozen.set("freeze_bn", std::int64_t{1});
  trainer.set(frozen);
}

quant::Course train_all(Trainer &trainer, const Batches &batches, const Recipe &recipe, const StepProgress &progress) {
  quant::Course course{0, recipe.epochs * batches.count, {}};
  bool goes_on = true;
  for (std::size_t epoch = 0; epoch < recipe.epochs && goes_on; ++epoch) {
    double sum = 0;
    std::size_t steps = 0;
    while (steps < batches.count && goes_on) {
      if (course.steps == recipe.moving) freeze(trainer);
      const double loss = step(trainer, batches.read(epoch, steps++));
      sum += loss;
      goes_on = progress(++course.steps, course.planned, loss);
    }
    course.losses.push_back(sum / static_cast<double>(steps));
  }
  return course;
}

}  // namespace

quant::Quantized quantize_qat(const graph::Graph &float_graph, const quant::Config &config, const Batches &batches,
                              const Attrs &attrs, const quant::Progress &calibrating, const StepProgress &training) {
  if (batches.count == 0) fail(QTN_EINVAL, "quantize_qat: there are no batches");
  const Recipe recipe = recipe_of(attrs, batches.count);
  quant::PreparedModel prepared = quant::prepare(float_graph, config, QTN_QAT);
  const std::size_t calibrated = std::min(recipe.calibration_batches, batches.count);
  const auto spread = [&](std::size_t i) { return batches.read(0, i * batches.count / calibrated).inputs; };
  quant::RowCount rows(float_graph);
  const quant::Samples read{calibrated, spread}, first = rows.watch(read);
  quant::calibrate_all(prepared, quant::counted(first, "calibrating", calibrating));
  Trainer trainer(prepared, recipe.trainer);

  quant::Quantized result;
  result.report.samples = rows.of(first);
  result.report.course = train_all(trainer, batches, recipe, training);
  const quant::PreparedModel trained = *trainer.prepared();
  result.graph = quant::convert(trained, nullptr);
  result.report.describe(float_graph, trained, result.graph);
  return result;
}

}  // namespace qtn::train
