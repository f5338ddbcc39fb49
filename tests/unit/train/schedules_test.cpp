// SPDX-License-Identifier: Apache-2.0
// Learning rates beside those of torch.optim.lr_scheduler.
#include "support.hpp"
#include "train/schedule.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

/// PyTorch goes from each rate to the next, which adds up rounding errors.
void rates_equal_torch(void **) {
  const auto file = golden("training/schedules.json");
  for (const auto &c : file.at("cases")) {
    const Schedule schedule(attrs_of(c.at("attrs")));
    const Tensor want = tensor_of(c.at("rates"));
    for (std::int64_t step = want.count(); step-- > 0;) {
      const double got = schedule.rate(step), rate = want.as<double>()[step];
      if (!(std::fabs(got - rate) <= 1e-12 * rate + 1e-16))
        fail_test(c.at("name").get<std::string>(), " at ", step, ": ", got, ", not ", rate);
    }
  }
  assert_int_equal(file.at("cases").size(), 9);
}

void ends_are_exact(void **) {
  const Attrs a = attrs({{"schedule", "cosine"},
                         {"lr", 0.1},
                         {"min_lr", 0.001},
                         {"total_steps", std::int64_t{50}},
                         {"warmup_steps", std::int64_t{4}}});
  const Schedule schedule(a);
  assert_true(schedule.rate(0) == 0.1 / 4 && schedule.rate(3) == 0.1 && schedule.rate(4) == 0.1);
  assert_true(schedule.rate(49) > 0.001 && schedule.rate(50) == 0.001 && schedule.rate(1'000'000'000) == 0.001);
  assert_true(Schedule({}).rate(7) == 0.001);
}

void options_are_checked(void **) {
  const auto expect = [](const Texts &texts, std::initializer_list<std::pair<const char *, Attr>> items) {
    expect_error(QTN_EINVAL, texts, [&] { Schedule{attrs(items)}; });
  };
  constexpr std::int64_t kTen = 10, kZero = 0;
  expect({"\"linear\"", "constant step cosine"}, {{"schedule", "linear"}});
  expect({"\"cosine\" has no \"gamma\"", "min_lr"}, {{"schedule", "cosine"}, {"gamma", 0.5}});
  expect({"lr -1 "}, {{"lr", -1.0}});
  expect({"total_steps 0 is below 1"}, {{"schedule", "cosine"}});
  expect({"total_steps 0 is below 1"}, {{"total_steps", kZero}});
  expect({"step_size 0 is below 1"}, {{"schedule", "step"}});
  expect({"warmup_steps -1 is below 0"}, {{"warmup_steps", std::int64_t{-1}}});
  expect({"total_steps 10 ", "warmup_steps 10"},
         {{"schedule", "cosine"}, {"total_steps", kTen}, {"warmup_steps", kTen}});
  Schedule{attrs({{"total_steps", kTen}, {"loss", "mse"}})};
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(rates_equal_torch),
      cmocka_unit_test(ends_are_exact),
      cmocka_unit_test(options_are_checked),
  };
  return cmocka_run_group_tests_name("schedules", tests, nullptr, nullptr);
}
