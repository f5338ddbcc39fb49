// SPDX-License-Identifier: Apache-2.0
// What a step of training takes from the system: nothing.
#include "capi/counting.hpp"
#include "support.hpp"
#include "train/loss.hpp"
#include "train/optimizer.hpp"

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

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {cmocka_unit_test(losses), cmocka_unit_test(optimizers)};
  return cmocka_run_group_tests_name("steady", tests, nullptr, nullptr);
}
