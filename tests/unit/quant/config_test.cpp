// SPDX-License-Identifier: Apache-2.0
// Recipes and the selectors that refine them.
#include "quant/config.hpp"

#include "graph_builder.hpp"

namespace qtn::quant {
namespace {

using namespace qtn::test;

graph::Node node(const char *op, const char *name) { return {name, ops::find_op(op), {}, {}, {}, std::nullopt}; }

std::string observer_of(const Config &config, const char *op, const char *name) {
  const auto settings = config.settings_for(node(op, name));
  return settings ? settings->activation_observer : "float";
}

void recipes(void **) {
  const auto onnx = Config("onnx").settings_for(node("Conv", "a"));
  assert_true(onnx->activation_observer == "minmax" && !onnx->fixed_outputs);
  const auto observer = make_observer(onnx->weight_observer, onnx->weight);
  assert_true(observer->settings().choose.narrow_range && observer->settings().choose.numerics == Numerics::onnx);
  const auto fbgemm = Config("fbgemm").settings_for(node("Conv", "a"));
  assert_true(fbgemm->activation_observer == "histogram" && fbgemm->fixed_outputs);
  assert_true(make_observer(fbgemm->activation_observer, fbgemm->activation)->settings().choose.reduce_range);
  assert_false(make_observer(fbgemm->weight_observer, fbgemm->weight)->settings().choose.reduce_range);
  expect_error(QTN_EUNSUPPORTED, "onnx fbgemm", [] { Config("nvidia"); });
}

void most_specific_wins(void **) {
  Config config("onnx");
  const Attrs mse = attrs({{"observer", "mse"}}), moving = attrs({{"observer", "moving_average"}}),
              histogram = attrs({{"observer", "histogram"}});
  config.set("node:block.1.conv", &histogram);
  config.set("name:block.*", &moving);
  config.set("op:Conv", nullptr);
  config.set("*", &mse);
  assert_string_equal(observer_of(config, "Conv", "block.1.conv").c_str(), "histogram");
  assert_string_equal(observer_of(config, "Conv", "block.2.conv").c_str(), "moving_average");
  assert_string_equal(observer_of(config, "Conv", "head").c_str(), "float");
  assert_string_equal(observer_of(config, "Add", "head.add").c_str(), "mse");
  config.set("name:*.conv", nullptr);
  assert_string_equal(observer_of(config, "Conv", "block.2.conv").c_str(), "float");
  assert_string_equal(observer_of(config, "Conv", "block.2.down").c_str(), "moving_average");
}

void keys_merge(void **) {
  Config config("onnx");
  const Attrs mse = attrs({{"observer", "mse"}}), bins = attrs({{"bins", std::int64_t{512}}});
  config.set("*", &mse);
  config.set("op:Conv", &bins);
  const auto settings = config.settings_for(node("Conv", "a"));
  assert_string_equal(settings->activation_observer.c_str(), "mse");
  assert_int_equal(settings->activation.get_int("bins", 0), 512);
  assert_string_equal(settings->weight.get_string("scheme", "").c_str(), "per_channel_symmetric");
}

void globs(void **) {
  for (const char *pattern : {"name:a?c*", "name:*", "name:abc.d", "name:*d", "name:a*c*d"}) {
    Config config("onnx");
    config.set(pattern, nullptr);
    assert_string_equal(observer_of(config, "Conv", "abc.d").c_str(), "float");
  }
  for (const char *pattern : {"name:a", "name:?", "name:*c", "name:abc.d?"}) {
    Config config("onnx");
    config.set(pattern, nullptr);
    assert_string_equal(observer_of(config, "Conv", "abc.d").c_str(), "minmax");
  }
}

void bad_settings(void **) {
  Config config("onnx");
  const auto set = [&](const char *selector, std::initializer_list<std::pair<const char *, Attr>> items) {
    const Attrs a = attrs(items);
    config.set(selector, &a);
  };
  expect_error(QTN_EINVAL, "no operator Convolution", [&] { set("op:Convolution", {}); });
  for (const char *selector : {"", "Conv", "op:", "type:Conv"})
    expect_error(QTN_EINVAL, "selector", [&] { set(selector, {}); });
  expect_error(QTN_EINVAL, "activation_dtype", [&] { set("*", {{"dtype", "uint8"}}); });
  expect_error(QTN_EINVAL, "\"observer\" must be a string", [&] { set("*", {{"observer", std::int64_t{1}}}); });
  expect_error(QTN_EINVAL, "moving_average", [&] { set("*", {{"observer", "maximum"}}); });
  expect_error(QTN_EUNSUPPORTED, "uint8 int8", [&] { set("*", {{"activation_dtype", "int16"}}); });
  expect_error(QTN_EUNSUPPORTED, "per_tensor_symmetric", [&] { set("*", {{"weight_scheme", "per_channel_affine"}}); });
  expect_error(QTN_EUNSUPPORTED, "per tensor", [&] { set("*", {{"weight_observer", "mse"}}); });
  expect_error(QTN_EUNSUPPORTED, {"numerics", "tflite"}, [&] { set("*", {{"numerics", "tflite"}}); });
  assert_string_equal(observer_of(config, "Conv", "a").c_str(), "minmax");
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {cmocka_unit_test(recipes), cmocka_unit_test(most_specific_wins),
                              cmocka_unit_test(keys_merge), cmocka_unit_test(globs), cmocka_unit_test(bad_settings)};
  return cmocka_run_group_tests_name("config", tests, nullptr, nullptr);
}
