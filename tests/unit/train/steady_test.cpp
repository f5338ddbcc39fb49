// SPDX-License-Identifier: Apache-2.0
// What a step of training takes from the system: nothing.
#include "capi/counting.hpp"
#include "onnx/onnx.hpp"
#include "support.hpp"
#include "train/steps/steps.hpp"
#include "train/trainer.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

/// Allocations with every number of threads, except in the first run, which makes a pool and the memory that later ones
/// use.
template <class Body>
void expect_steady(const std::string &what, const Body &body) {
  for (const int threads : {1, 2}) {
    set_default_threads(threads);
    body();
    const long taken = counts_of(body).allocations;
    if (taken != 0) fail_test(what, ", ", threads, " threads: ", taken, " allocations");
  }
}

/// Nor a lock, which products by BLAS take.
template <class Body>
void expect_no_lock(const std::string &what, const Body &body) {
  expect_steady(what, body);
  set_default_threads(1);
  if (const long taken = counts_of(body).locks; taken != 0) fail_test(what, ": ", taken, " locks");
}

void losses(void **) {
  const Tensor y = varied({300, 50}, 1), dy(QTN_FLOAT32, y.shape()), teacher = varied(y.shape(), 2);
  Tensor labels(QTN_INT64, {300});
  for (std::int64_t i = 0; i < 300; ++i) labels.as<std::int64_t>()[i] = i % 50;
  const Tensor *one[] = {&labels}, *same[] = {&teacher}, *both[] = {&teacher, &labels};
  const auto check = [&](const Attrs &a, std::span<const Tensor *const> targets) {
    const auto loss = make_loss(a);
    expect_no_lock(a.get_string("loss", ""), [&] { loss->run(std::span(&y, 1), targets, std::span(&dy, 1)); });
  };
  check(attrs({{"loss", "cross_entropy"}, {"label_smoothing", 0.1}}), one);
  check(attrs({{"loss", "cross_entropy"}}), same);
  check(attrs({{"loss", "mse"}}), same);
  check(attrs({{"loss", "huber"}}), same);
  check(attrs({{"loss", "distillation"}, {"alpha", 0.5}}), both);
}

void optimizers(void **) {
  for (const char *kind : {"sgd", "adam", "adamw"}) {
    std::vector<Parameter> parameters = {
        {.name = "w", .value = varied({200, 200}, 1), .gradient = varied({200, 200}, 2)}};
    Attrs a = attrs({{"optimizer", kind}, {"clip_norm", 1.0}, {"clip_value", 0.5}});
    if (std::string(kind) == "sgd") a.set("momentum", 0.9);
    const auto optimizer = make_optimizer(a, parameters);
    expect_no_lock(kind, [&] { optimizer->step(0.01); });
  }
}

/// Batches of two sizes in turn, as at the end of an epoch, and both of them before an update.
void expect_steady_steps(const std::string &what, Trainer &trainer, const Tensor &x, const Tensor &target) {
  const Tensor part = x.slice(0, 0, 3, 1), part_target = target.slice(0, 0, 3, 1);
  const Tensor *all[] = {&x}, *all_targets[] = {&target}, *few[] = {&part}, *few_targets[] = {&part_target};
  const auto body = [&] {
    trainer.backward(all, all_targets);
    trainer.backward(few, few_targets);
    trainer.update();
  };
  expect_steady(what, body);
}

/// A step alone, with tensors of a golden file's gradients.
class OneStep {
 public:
  OneStep(const ops::OpDef &op, const nlohmann::json &j) {
    const graph::Node node{op.name, &op, attrs_of(j.at("attrs"), op), {}, {}, {}};
    SlotIds inputs, outputs;
    for (std::size_t i = 0; i < j.at("inputs").size(); ++i) {
      const auto &x = j.at("inputs")[i];
      inputs.push_back(x.is_null() ? kNoSlot : add(tensor_of(x), !j.at("dx")[i].is_null()));
    }
    Inputs operands;
    for (const SlotId s : inputs)
      operands.push_back(s == kNoSlot ? nullptr : &slots_[static_cast<std::size_t>(s)].value);
    const std::size_t count = j.at("dy").size();
    std::vector<Tensor> ys = ops::run_op(op, {node.attrs, operands, count});
    for (std::size_t i = 0; i < count; ++i) {
      outputs.push_back(add(ys[i], false));
      if (!j.at("dy")[i].is_null()) slots_.back().gradient = tensor_of(j.at("dy")[i]);
    }
    step_ = &op == &ops::kConv ? make_convolution(node, inputs, outputs[0]) : make_operator(node, inputs, outputs);
    step_->bind(slots_);
    for (const SlotId s : step_->grad_inputs)
      dx_.push_back(s == kNoSlot ? Tensor() : slots_[static_cast<std::size_t>(s)].gradient);
  }

  void run() {
    step_->forward(scratch_);
    step_->backward(dx_, scratch_);
  }

 private:
  SlotId add(const Tensor &value, bool wanted) {
    Slot slot;
    slot.type = {value.dtype(), value.shape()};
    slot.value = value;
    if (wanted) slot.gradient = Tensor(value.dtype(), value.shape());
    slots_.push_back(std::move(slot));
    return static_cast<SlotId>(slots_.size()) - 1;
  }

  std::vector<Slot> slots_;
  StepPtr step_;
  std::vector<Tensor> dx_;
  Scratch scratch_;
};

void operators(void **) {
  for (const ops::OpDef *op : ops::all_ops()) {
    if (!op->backward) continue;
    const nlohmann::json file = golden(cat("gradients/", op->name, ".json"));
    for (const auto &j : file.at("cases")) {
      OneStep step(*op, j);
      expect_steady(cat(op->name, "/", j.at("name").get<std::string>()), [&] { step.run(); });
    }
  }
}

void steps(void **) {
  struct Case {
    const char *path;
    Shape x, y;
  };
  // The fourth has shortcuts and a MaxPool as a ResNet, the last depthwise convolutions of both strides.
  const Case kCases[] = {{"conformance/networks/linears", {8, 6}, {8, 3}},
                         {"conformance/networks/add_relu", {8, 2, 3, 3}, {8, 2, 3, 3}},
                         {"conformance/networks/conv_bn_relu", {8, 1, 4, 4}, {8, 1, 4, 4}},
                         {"golden/training/float", {8, 1, 8, 8}, {8, 5}},
                         {"conformance/networks/mobilenet_v2", {8, 3, 16, 16}, {8, 5}}};
  const Attrs options = attrs({{"loss", "mse"}, {"momentum", 0.9}, {"clip_norm", 1.0}, {"lr", 1e-5}});
  Attrs frozen;
  frozen.set("freeze_bn", std::int64_t{1});
  frozen.set("observers", std::int64_t{0});
  for (const Case &c : kCases) {
    const graph::Graph network = onnx::load(cat(QTN_GOLDEN_DIR, "/../", c.path, ".onnx"));
    const Tensor x = varied(c.x, 1), target = varied(c.y, 2);
    Trainer floats(network, options);
    expect_steady_steps(c.path, floats, x, target);
    for (const char *recipe : {"onednn", "qnnpack", "nvidia", "onnx"}) {
      Trainer grids(quant::prepare(network, quant::Config(recipe), QTN_QAT), options);
      expect_steady_steps(cat(c.path, ", ", recipe), grids, x, target);
      grids.set(frozen);
      expect_steady_steps(cat(c.path, ", ", recipe, ", frozen"), grids, x, target);
    }
    for (const char *kind : {"lsq+", "pact"}) {
      quant::Config config("onnx");
      const Attrs learning = attrs({{"activation_learning", kind}, {"weight_learning", "lsq"}});
      config.set("*", &learning);
      Trainer learned(quant::prepare(network, config, QTN_QAT), options);
      expect_steady_steps(cat(c.path, ", ", kind), learned, x, target);
    }
  }
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {cmocka_unit_test(losses), cmocka_unit_test(optimizers), cmocka_unit_test(operators),
                              cmocka_unit_test(steps)};
  return cmocka_run_group_tests_name("steady", tests, nullptr, nullptr);
}
