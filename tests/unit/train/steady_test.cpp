// SPDX-License-Identifier: Apache-2.0
// What a step of training takes from the system: nothing.
#include "capi/counting.hpp"
#include "onnx/onnx.hpp"
#include "support.hpp"
#include "train/trainer.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

/// Of every number of threads, but for the pool that the first run makes.
template <class Body>
void expect_steady(const std::string &what, const Body &body) {
  for (const int threads : {1, 2}) {
    set_default_threads(threads);
    body();
    const Counts taken = counts_of(body);
    if (taken.allocations != 0) fail_test(what, ", ", threads, " threads: ", taken.allocations, " allocations");
    if (threads == 1 && taken.locks != 0) fail_test(what, ": ", taken.locks, " locks");
  }
}

void losses(void **) {
  const Tensor y = varied({300, 50}, 1), dy(QTN_FLOAT32, y.shape()), teacher = varied(y.shape(), 2);
  Tensor labels(QTN_INT64, {300});
  for (std::int64_t i = 0; i < 300; ++i) labels.as<std::int64_t>()[i] = i % 50;
  const Tensor *one[] = {&labels}, *same[] = {&teacher}, *both[] = {&teacher, &labels};
  const auto check = [&](const Attrs &a, std::span<const Tensor *const> targets) {
    const auto loss = make_loss(a);
    expect_steady(a.get_string("loss", ""), [&] { loss->run(std::span(&y, 1), targets, std::span(&dy, 1)); });
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
    expect_steady(kind, [&] { optimizer->step(0.01); });
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
  for (const int threads : {1, 2}) {
    set_default_threads(threads);
    body();
    const long taken = counts_of(body).allocations;  // locks are those of BLAS
    if (taken != 0) fail_test(what, ", ", threads, " threads: ", taken, " allocations");
  }
}

/// Of networks without windows: operators read theirs from attributes at every call, and that allocates.
void steps(void **) {
  struct Case {
    const char *network;
    Shape x, y;
  };
  const Attrs options = attrs({{"loss", "mse"}, {"momentum", 0.9}, {"clip_norm", 1.0}});
  Attrs frozen;
  frozen.set("freeze_bn", std::int64_t{1});
  frozen.set("observers", std::int64_t{0});
  for (const Case &c : {Case{"linears", {8, 6}, {8, 3}}, Case{"add_relu", {8, 2, 3, 3}, {8, 2, 3, 3}},
                        Case{"conv_bn_relu", {8, 1, 4, 4}, {8, 1, 4, 4}}}) {
    const graph::Graph network = onnx::load(cat(QTN_GOLDEN_DIR, "/../conformance/networks/", c.network, ".onnx"));
    const Tensor x = varied(c.x, 1), target = varied(c.y, 2);
    Trainer floats(network, options);
    expect_steady_steps(c.network, floats, x, target);
    for (const char *recipe : {"onednn", "qnnpack", "nvidia", "onnx"}) {
      Trainer grids(quant::prepare(network, quant::Config(recipe), QTN_QAT), options);
      expect_steady_steps(cat(c.network, ", ", recipe), grids, x, target);
      grids.set(frozen);
      expect_steady_steps(cat(c.network, ", ", recipe, ", frozen"), grids, x, target);
    }
  }
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {cmocka_unit_test(losses), cmocka_unit_test(optimizers), cmocka_unit_test(steps)};
  return cmocka_run_group_tests_name("steady", tests, nullptr, nullptr);
}
