// SPDX-License-Identifier: Apache-2.0
#include "shared/training.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <numbers>

#include "data/file.hpp"
#include "data/shuffle.hpp"
#include "shared/interrupt.hpp"
#include "shared/model.hpp"
#include "shared/progress.hpp"

namespace tool {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBatch = 32;
constexpr double kLastRate = 0.01;  // of the first, at the end of a cosine

size_t batch_of(const qmodel *model, const LabelledSamples &data, size_t wanted) {
  if (wanted == 0 && fixed_batch(model) == 0) return std::min(kBatch, data.count());
  const size_t batch = batch_size(model, data.samples(), wanted);
  if (batch > data.count())
    throw Failure("--batch " + std::to_string(batch) + " is more than the " + std::to_string(data.count()) +
                  " samples to train on");
  return batch;
}

Trainer make_trainer(const qmodel *model, const TrainingOptions &options, size_t steps) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  const auto text = [&](const char *key, const std::string &value) {
    check(qattrs_set_string(attrs.get(), key, value.c_str()));
  };
  const auto count = [&](const char *key, int64_t value) { check(qattrs_set_int(attrs.get(), key, value)); };
  const auto number = [&](const char *key, double value) { check(qattrs_set_float(attrs.get(), key, value)); };
  text("optimizer", options.optimizer);
  text("schedule", options.schedule);
  number("lr", options.lr);
  if (options.schedule == "cosine") number("min_lr", kLastRate * options.lr);
  if (options.momentum) number("momentum", *options.momentum);
  if (options.weight_decay) number("weight_decay", *options.weight_decay);
  count("total_steps", static_cast<int64_t>(steps));
  count("warmup_steps", static_cast<int64_t>(options.warmup));
  count("seed", options.seed);
  return make<Trainer>(qtrainer_create, model, attrs.get());
}

// How many steps a checkpoint has seen: header, qtrainer_save.
size_t steps_in(const std::string &checkpoint) {
  const Tensor numbers = make<Tensor>(qtensor_load_named, checkpoint.c_str(), "trainer");
  if (qtensor_dtype(numbers.get()) != QTN_INT64 || shape_of(numbers.get()) != Shape{4})
    throw Failure(checkpoint + ": is not a checkpoint");
  return static_cast<size_t>(static_cast<const int64_t *>(qtensor_data(numbers.get()))[1]);
}

void append_line(const std::string &path, const std::string &line) {
  const Postponed signals;
  std::ofstream file(path, std::ios::app);
  file << line << '\n';
  file.close();
  if (!file) throw Failure(path + ": cannot be written: " + std::strerror(errno));
}

Epoch epoch_of(const nlohmann::json &json) {
  Epoch epoch{json.at("epoch"), json.at("step"), json.at("lr"), json.at("loss"), {}, {}, json.at("seconds")};
  epoch.training.top1 = json.at("top1");
  if (json.at("validation_top1").is_null()) return epoch;
  epoch.validation.emplace();
  epoch.validation->loss = json.at("validation_loss");
  epoch.validation->top1 = json.at("validation_top1");
  return epoch;
}

// What a log says of the first `count` epochs of `steps` steps. Lines of an epoch that was cut off, or that were cut
// off themselves, are passed over; an epoch that was trained again counts once.
std::vector<Epoch> logged(const std::string &path, size_t count, size_t steps) {
  std::map<size_t, Epoch> epochs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    try {
      Epoch epoch = epoch_of(nlohmann::json::parse(line));
      const size_t number = epoch.number;
      if (number <= count && epoch.step == number * steps) epochs.insert_or_assign(number, std::move(epoch));
    } catch (const nlohmann::json::exception &) {
      continue;
    }
  }
  if (file.bad()) throw Failure(path + ": cannot be read: " + std::strerror(errno));
  std::vector<Epoch> list;
  for (auto &[number, epoch] : epochs) list.push_back(std::move(epoch));
  return list;
}

}  // namespace

std::string best_path(const std::string &checkpoint) {
  constexpr std::string_view kEnd = ".safetensors";
  return checkpoint.substr(0, checkpoint.size() - kEnd.size()) + ".best" + std::string(kEnd);
}

const Score &judged(const Epoch &epoch) { return epoch.validation ? *epoch.validation : epoch.training; }

nlohmann::ordered_json json_of(const Epoch &epoch) {
  nlohmann::ordered_json json = {{"epoch", epoch.number},
                                 {"step", epoch.step},
                                 {"lr", epoch.lr},
                                 {"loss", epoch.loss},
                                 {"top1", epoch.training.top1}};
  json["validation_loss"] = nullptr;
  json["validation_top1"] = nullptr;
  if (epoch.validation) {
    json["validation_loss"] = epoch.validation->loss;
    json["validation_top1"] = epoch.validation->top1;
  }
  json["seconds"] = epoch.seconds;
  return json;
}

Training::Training(const qmodel *model, const LabelledSamples &data, const LabelledSamples *validation,
                   const TrainingOptions &options)
    : data_(data),
      validation_(validation),
      options_(options),
      batch_(batch_of(model, data, options.batch)),
      steps_(data.count() / batch_),
      trainer_(make_trainer(model, options, options.epochs * steps_)),
      outputs_(qmodel_output_count(model)) {
  // What does not fit is found before hours of work.
  for (const LabelledSamples *samples : {&data_, validation_}) {
    if (samples == nullptr) continue;
    batch_size(model, samples->samples(), batch_);
    score_of(*samples, std::min(samples->count(), batch_));
  }
}

Score Training::score_of(const LabelledSamples &samples, size_t count) {
  const Answer answer = [&](const std::vector<Tensor> &inputs) {
    std::vector<qtensor *> raw(outputs_);
    const std::vector<const qtensor *> pointers = borrow(inputs);
    check(qtrainer_evaluate(raw.data(), raw.size(), trainer_.get(), pointers.data(), pointers.size()));
    return std::vector<Tensor>(raw.begin(), raw.end());
  };
  return score(answer, samples, count, batch_);
}

double Training::top1() {
  const LabelledSamples &samples = validation_ != nullptr ? *validation_ : data_;
  return score_of(samples, samples.count()).top1;
}

double Training::rate(size_t step) const {
  if (step < options_.warmup) return options_.lr * static_cast<double>(step + 1) / static_cast<double>(options_.warmup);
  if (options_.schedule != "cosine") return options_.lr;
  const double part =
      static_cast<double>(step - options_.warmup) / static_cast<double>(options_.epochs * steps_ - options_.warmup);
  const double least = kLastRate * options_.lr;
  return least + (options_.lr - least) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

bool Training::keep(size_t epoch, double top1) {
  if (top1 < best_.top1) return false;
  best_ = {epoch, top1, make<Model>(qtrainer_model, trainer_.get())};
  return true;
}

// The best model's own checkpoint is written before the other: where the process ends in between, the epoch that comes
// again finds the same best.
void Training::save(bool best) const {
  if (options_.checkpoint.empty()) return;
  if (best) write_whole([&] { return qtrainer_save(trainer_.get(), best_path(options_.checkpoint).c_str()); });
  write_whole([&] { return qtrainer_save(trainer_.get(), options_.checkpoint.c_str()); });
}

size_t Training::resume() {
  const std::string best = best_path(options_.checkpoint);
  const size_t step = steps_in(options_.checkpoint), best_step = steps_in(best);
  if (step % steps_ != 0 || step > options_.epochs * steps_)
    throw Failure(options_.checkpoint + ": is of step " + std::to_string(step) + ", which ends none of " +
                  std::to_string(options_.epochs) + " epochs of " + std::to_string(steps_) +
                  " steps: other --epochs, --batch or data");
  check(qtrainer_load(trainer_.get(), best.c_str()));
  keep(best_step / steps_, top1());
  check(qtrainer_load(trainer_.get(), options_.checkpoint.c_str()));
  return step / steps_;
}

double Training::step(const Batch &batch) {
  const std::vector<const qtensor *> inputs = borrow(batch.inputs);
  const qtensor *labels = batch.labels.get();
  double loss = 0;
  check(qtrainer_step(&loss, trainer_.get(), inputs.data(), inputs.size(), &labels, 1));
  return loss;
}

void Training::freeze() {
  const Attrs frozen = make<Attrs>(qattrs_create);
  check(qattrs_set_int(frozen.get(), "freeze_bn", 1));
  check(qtrainer_set(trainer_.get(), frozen.get()));
}

void Training::finish(Epoch epoch, Clock::time_point start) {
  const size_t seen = validation_ != nullptr ? std::min(validation_->count(), data_.count()) : data_.count();
  epoch.training = score_of(data_, seen);
  if (validation_ != nullptr) epoch.validation = score_of(*validation_, validation_->count());
  epoch.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const bool best = keep(epoch.number, judged(epoch).top1);
  if (epoch.step % steps_ == 0) save(best);
  if (!options_.log.empty()) append_line(options_.log, json_of(epoch).dump());
  char note[96];
  std::snprintf(note, sizeof note, ", epoch %zu of %zu: loss %.4f, top-1 %.2f %%", epoch.number, options_.epochs,
                epoch.loss, 100 * judged(epoch).top1);
  note_ = note;
  epochs_.push_back(std::move(epoch));
}

void Training::run() {
  const size_t first = options_.resume ? resume() : 0;
  if (options_.resume) epochs_ = logged(options_.log, first, steps_);
  if (!options_.log.empty() && !options_.resume) write_file(options_.log, "");
  const size_t total = options_.epochs * steps_;
  const size_t moving = total - std::max(total / 5, options_.epochs > 1 ? steps_ : 0);
  const Interrupt interrupt;
  Progress progress;
  for (size_t epoch = first; epoch < options_.epochs && !interrupt.asked(); ++epoch) {
    const Clock::time_point start = Clock::now();
    const std::vector<size_t> order = shuffled(data_.count(), static_cast<uint64_t>(options_.seed), epoch);
    double loss = 0;
    size_t done = 0;
    do {
      if (options_.freezes && epoch * steps_ + done >= moving) freeze();
      loss += step(data_.read(std::span(order).subspan(done * batch_, batch_)));
      ++done;
      progress.at("training", (epoch - first) * steps_ + done, (options_.epochs - first) * steps_, note_);
    } while (done < steps_ && !interrupt.asked());
    const size_t steps = epoch * steps_ + done;
    finish({epoch + 1, steps, rate(steps - 1), loss / static_cast<double>(done), {}, {}, 0}, start);
  }
  interrupted_ = interrupt.asked();
}

}  // namespace tool
