// SPDX-License-Identifier: Apache-2.0
// Losses and their gradients compared with PyTorch's in double precision.
#include "support.hpp"
#include "train/loss.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

struct Result {
  double loss;
  Tensor gradient;
};

Result run(const Attrs &attrs, const Tensor &output, const std::vector<Tensor> &targets) {
  std::vector<const Tensor *> pointers;
  for (const Tensor &t : targets) pointers.push_back(&t);
  const Tensor dy(QTN_FLOAT32, output.shape());
  const double loss = make_loss(attrs)->run(std::span(&output, 1), pointers, std::span(&dy, 1));
  return {loss, dy};
}

Result cross_entropy_of(const Tensor &output, const Tensor &target) { return run({}, output, {target}); }

Attrs kind(const char *name) { return attrs({{"loss", name}}); }

/// Sums are in double and gradients are rounded once, so that little is left to tolerate.
void losses_equal_torch(void **) {
  const auto file = golden("training/losses.json");
  for (const auto &c : file.at("cases")) {
    const std::string name = c.at("name");
    std::vector<Tensor> targets;
    for (const auto &t : c.at("targets")) targets.push_back(tensor_of(t));
    const Result got = run(attrs_of(c.at("attrs")), tensor_of(c.at("output")), targets);
    const auto want = c.at("loss").get<double>();
    if (!(std::fabs(got.loss - want) <= 1e-13 * (1 + std::fabs(want))))
      fail_test(name, ": loss ", got.loss, ", not ", want, ", apart by ", got.loss - want);
    const Tensor gradient = tensor_of(c.at("gradient"));
    double largest = 0;
    for (std::int64_t i = 0; i < gradient.count(); ++i)
      largest = std::max(largest, std::fabs(gradient.as<double>()[i]));
    for (std::int64_t i = 0; i < gradient.count(); ++i) {
      const double a = static_cast<double>(got.gradient.as<float>()[i]), b = gradient.as<double>()[i];
      if (!(std::fabs(a - b) <= 1e-7 * largest)) fail_test(name, ": gradient ", i, " is ", a, ", not ", b);
    }
  }
  assert_int_equal(file.at("cases").size(), 35);
}

/// [classes, samples] read as [samples, classes].
void targets_have_any_strides(void **) {
  const Tensor y = varied({4, 3}, 1), across = varied({3, 4}, 2);
  const std::int32_t swap[] = {1, 0};
  const Tensor t = across.permute(swap);
  for (const char *name : {"cross_entropy", "mse", "huber", "distillation"}) {
    const Result strided = run(kind(name), y, {t}), plain = run(kind(name), y, {t.clone()});
    assert_true(strided.loss == plain.loss && same_bits(strided.gradient, plain.gradient));
  }
  const Tensor pairs = ints({2, 9, 0, 9, 1, 9, 2, 9});
  assert_true(cross_entropy_of(y, pairs.slice(0, 0, 8, 2)).loss == cross_entropy_of(y, ints({2, 0, 1, 2})).loss);
}

void outputs_add_up(void **) {
  const Tensor outputs[] = {varied({2, 3}, 1), varied({5}, 2)}, t0 = varied({2, 3}, 3), t1 = varied({5}, 4);
  const Tensor dy[] = {Tensor(QTN_FLOAT32, {2, 3}), Tensor(QTN_FLOAT32, {5})};
  const Tensor *targets[] = {&t0, &t1};
  const double both = make_loss(kind("mse"))->run(outputs, targets, dy);
  const Result first = run(kind("mse"), outputs[0], {t0}), second = run(kind("mse"), outputs[1], {t1});
  assert_true(both == first.loss + second.loss);
  assert_true(same_bits(dy[0], first.gradient) && same_bits(dy[1], second.gradient));
}

void nan_comes_through(void **) {
  Tensor y = varied({4, 3}, 1);
  y.as<float>()[7] = NAN;
  const Tensor t = varied({4, 3}, 2);
  for (const char *name : {"cross_entropy", "mse", "huber", "distillation"}) {
    const Result got = run(kind(name), y, {t});
    assert_true(std::isnan(got.loss));
    assert_true(std::isnan(got.gradient.as<float>()[7]));
    assert_false(std::isnan(got.gradient.as<float>()[0]));
  }
  assert_true(std::isnan(cross_entropy_of(y, ints({0, 1, 0, 1})).loss));
}

void threads_change_no_bit(void **) {
  const Tensor y = varied({700, 40}, 1), t = varied({700, 40}, 2), pixels = varied({3, 11, 50, 37}, 3);
  Tensor labels(QTN_INT64, {3, 50, 37});
  for (std::int64_t i = 0; i < labels.count(); ++i) labels.as<std::int64_t>()[i] = i * 7 % 11;
  for (const char *name : {"cross_entropy", "mse", "huber", "distillation"}) {
    set_default_threads(1);
    const Result one = run(kind(name), y, {t});
    for_thread_counts([&] {
      const Result got = run(kind(name), y, {t});
      assert_true(got.loss == one.loss && same_bits(got.gradient, one.gradient));
    });
  }
  const Attrs mixed = attrs({{"loss", "distillation"}, {"alpha", 0.5}});
  set_default_threads(1);
  const Result one = run(mixed, pixels, {pixels, labels});
  for_thread_counts([&] {
    const Result got = run(mixed, pixels, {pixels, labels});
    assert_true(got.loss == one.loss && same_bits(got.gradient, one.gradient));
  });
}

void targets_that_do_not_fit_are_refused(void **) {
  const Tensor y = varied({4, 3}, 1), pixels = varied({2, 3, 2, 2}, 1);
  expect_error(QTN_EINVAL, {"cross_entropy", "label 3 ", "sample 2 ", "3 classes"}, [&] {
    cross_entropy_of(y, ints({0, 1, 3, 7}));
  });
  expect_error(QTN_EINVAL, {"label -1 ", "sample 1 "}, [&] {
    cross_entropy_of(pixels, ints({0, 0, 1, 2, 0, -1, 0, 0}).reshape({2, 2, 2}));
  });
  expect_error(QTN_ESHAPE, {"labels are 3,", "not 4 for logits 4x3"}, [&] { cross_entropy_of(y, ints({0, 1, 2})); });
  expect_error(QTN_ESHAPE, {"distributions are 4x2,", "not 4x3"}, [&] { cross_entropy_of(y, varied({4, 2}, 1)); });
  expect_error(QTN_EDTYPE, {"uint8"}, [&] { cross_entropy_of(y, Tensor(QTN_UINT8, {4})); });
  expect_error(QTN_ESHAPE, {"the output is 4,", "along axis 1"}, [&] { cross_entropy_of(varied({4}, 1), ints({0})); });
  expect_error(QTN_ESHAPE, {"the output is 2x0,"}, [&] { cross_entropy_of(varied({2, 0}, 1), ints({0, 0})); });
  expect_error(QTN_EDTYPE, {"output 0 is int64"}, [&] { cross_entropy_of(ints({1}), ints({0})); });
  for (const char *name : {"mse", "huber", "distillation"}) {
    expect_error(QTN_ESHAPE, {name, "4x2", "4x3"}, [&] { run(kind(name), y, {varied({4, 2}, 1)}); });
    expect_error(QTN_EDTYPE, {name, "int64"}, [&] { run(kind(name), y, {ints({0, 1, 2, 0})}); });
  }
  expect_error(QTN_EINVAL, {"1 outputs have 1 targets, not 2"}, [&] { run({}, y, {y, y}); });
  const Attrs mixed = attrs({{"loss", "distillation"}, {"alpha", 0.5}});
  expect_error(QTN_EINVAL, {"1 outputs have 2 targets, not 1"}, [&] { run(mixed, y, {y}); });
  expect_error(QTN_EINVAL, {"distillation: label 5 "}, [&] { run(mixed, y, {y, ints({0, 1, 5, 0})}); });
}

void places_that_are_ignored_are_not_checked(void **) {
  const Tensor words = varied({2, 3, 4}, 1);
  const Attrs padded = attrs({{"class_axis", std::int64_t{-1}}, {"ignore_index", std::int64_t{9}}});
  expect_error(QTN_EINVAL, {"label 8 ", "sample 1 ", "4 classes"}, [&] {
    run(padded, words, {ints({9, 9, 0, 1, 8, 9}).reshape({2, 3})});
  });
  const Result nothing = run(padded, words, {ints({9, 9, 9, 9, 9, 9}).reshape({2, 3})});
  assert_true(nothing.loss == 0);
  for (std::int64_t i = 0; i < nothing.gradient.count(); ++i) assert_true(nothing.gradient.as<float>()[i] == 0);
  expect_error(QTN_ESHAPE, {"axis -3"}, [&] { run(attrs({{"class_axis", std::int64_t{-3}}}), words, {words}); });
}

void options_are_checked(void **) {
  expect_error(QTN_EINVAL, {"class_axis is 0"}, [] { make_loss(attrs({{"class_axis", std::int64_t{0}}})); });
  expect_error(QTN_EINVAL, {"\"hinge\"", "cross_entropy mse huber distillation"}, [] { make_loss(kind("hinge")); });
  expect_error(QTN_EINVAL, {"\"mse\" has no \"delta\"", "it has: loss"}, [] {
    make_loss(attrs({{"loss", "mse"}, {"delta", 2.0}}));
  });
  expect_error(QTN_EINVAL, {"label_smoothing 1 ", "[0, 1)"}, [] { make_loss(attrs({{"label_smoothing", 1.0}})); });
  expect_error(QTN_EINVAL, {"delta 0 "}, [] { make_loss(attrs({{"loss", "huber"}, {"delta", 0.0}})); });
  expect_error(QTN_EINVAL, {"temperature -1 "}, [] {
    make_loss(attrs({{"loss", "distillation"}, {"temperature", -1.0}}));
  });
  expect_error(QTN_EINVAL, {"alpha 1.5 ", "[0, 1]"}, [] {
    make_loss(attrs({{"loss", "distillation"}, {"alpha", 1.5}}));
  });
  make_loss(attrs({{"optimizer", "adam"}, {"lr", 0.1}}));
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(losses_equal_torch),
      cmocka_unit_test(targets_have_any_strides),
      cmocka_unit_test(outputs_add_up),
      cmocka_unit_test(nan_comes_through),
      cmocka_unit_test(threads_change_no_bit),
      cmocka_unit_test(targets_that_do_not_fit_are_refused),
      cmocka_unit_test(places_that_are_ignored_are_not_checked),
      cmocka_unit_test(options_are_checked),
  };
  return cmocka_run_group_tests_name("losses", tests, nullptr, nullptr);
}
