// SPDX-License-Identifier: Apache-2.0
// Recipes and the selectors that refine them.
#include "quant/config.hpp"

#include <unistd.h>

#include <filesystem>

#include "base/file.hpp"
#include "graph_builder.hpp"
#include "quant/config_file.hpp"

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
  expect_error(QTN_EUNSUPPORTED, "onnx fbgemm x86 qnnpack onednn nvidia tflite", [] { Config("tensorrt"); });
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
  expect_error(QTN_EUNSUPPORTED, "uint8 int8 int16", [&] { set("*", {{"activation_dtype", "int32"}}); });
  expect_error(QTN_EUNSUPPORTED, "bias \"int64\" is not offered; offered are int32 float32", [&] {
    set("*", {{"bias", "int64"}});
  });
  expect_error(QTN_EUNSUPPORTED, "int8 int4", [&] { set("*", {{"weight_dtype", "int16"}}); });
  expect_error(QTN_EUNSUPPORTED, "per_block_symmetric", [&] { set("*", {{"weight_scheme", "per_channel_affine"}}); });
  expect_error(QTN_EUNSUPPORTED, "per tensor", [&] { set("*", {{"weight_observer", "mse"}}); });
  expect_error(QTN_EUNSUPPORTED, "nvidia numerics are symmetric", [&] { set("*", {{"numerics", "nvidia"}}); });
  expect_error(QTN_EINVAL, "\"tpu\"", [&] { set("*", {{"numerics", "tpu"}}); });
  for (const double margin : {-0.1, 10.5, std::nan("")})
    expect_error(QTN_EINVAL, "margin", [&] { set("*", {{"margin", margin}}); });
  expect_error(QTN_EINVAL, "needs block_size", [&] { set("*", {{"weight_scheme", "per_block_symmetric"}}); });
  expect_error(QTN_EINVAL, "block size 0", [&] {
    set("*", {{"weight_scheme", "per_block_symmetric"}, {"block_size", std::int64_t{0}}});
  });
  expect_error(QTN_EINVAL, "block_size is of", [&] { set("*", {{"block_size", std::int64_t{8}}}); });
  expect_error(QTN_EINVAL, "scale is of the observer \"fixed\"", [&] { set("*", {{"scale", 1.0}}); });
  expect_error(QTN_EINVAL, "min and max, not: scale", [&] { set("*", {{"observer", "fixed"}, {"scale", 1.0}}); });
  expect_error(QTN_EINVAL, "valid are: quantize observer activation_dtype", [&] {
    set("tensor:x", {{"weight_dtype", "int4"}});
  });
  expect_error(QTN_EINVAL, "select them", [&] { config.set("tensor:x", nullptr); });
  assert_string_equal(observer_of(config, "Conv", "a").c_str(), "minmax");
}

/// What makes sense only with what was said of all nodes.
void settings_of_all_count(void **) {
  Config config("onnx");
  const Attrs symmetric = attrs({{"activation_scheme", "per_tensor_symmetric"}, {"activation_dtype", "int8"}}),
              nvidia = attrs({{"numerics", "nvidia"}});
  expect_error(QTN_EUNSUPPORTED, "symmetric", [&] { config.set("op:Conv", &nvidia); });
  config.set("*", &symmetric);
  config.set("op:Conv", &nvidia);
  assert_string_equal(config.settings_for(node("Conv", "a"))->activation.get_string("numerics", "").c_str(), "nvidia");
}

/// A grid that was given is of the observer "fixed" alone.
void another_observer_forgets_the_given_grid(void **) {
  Config config("onnx");
  const Attrs fixed = attrs({{"observer", "fixed"}, {"min", -1.0}, {"max", 2.0}}), mse = attrs({{"observer", "mse"}});
  config.set("*", &fixed);
  config.set("op:Conv", &mse);
  const auto settings = config.settings_for(node("Conv", "a"));
  assert_string_equal(make_observer(settings->activation_observer, settings->activation)->kind().data(), "mse");
}

std::string in_folder(const char *name) {
  return (std::filesystem::temp_directory_path() / cat("qtensor_config_", getpid(), "_", name)).string();
}

void files_round_trip(void **) {
  Config config("qnnpack");
  const Attrs conv = attrs({{"bins", std::int64_t{512}}, {"observer", "percentile"}, {"percentile", 99.0}}),
              fixed = attrs({{"observer", "fixed"}, {"min", -1.5}, {"max", 2.0}});
  config.set("tensor:a \"quoted\" name", &fixed);
  config.set("node:head", nullptr);
  config.set("op:Conv", &conv);
  const std::string path = in_folder("round.json");
  save_config(config, path);
  const Config loaded = load_config(path);
  const std::string again = in_folder("again.json");
  save_config(loaded, again);
  assert_true(read_file(path) == read_file(again));
  assert_string_equal(loaded.name().c_str(), "qnnpack");
  assert_int_equal(loaded.rules().size(), 3);
  const auto settings = loaded.settings_for(node("Conv", "a"));
  assert_true(settings->activation_observer == "percentile" && settings->activation.get_float("percentile", 0) == 99.0);
  assert_string_equal(observer_of(loaded, "Conv", "head").c_str(), "float");
  const std::string_view names[] = {"a \"quoted\" name"};
  assert_string_equal(loaded.settings_for(*settings, names).activation_observer.c_str(), "fixed");
  for (const std::string &file : {path, again}) std::filesystem::remove(file);
}

void files_by_hand(void **) {
  const std::string path = in_folder("hand.json");
  write_file(path, R"({"rules": [{"settings": {"reduce_range": true}, "selector": "*"}], "recipe": "onnx"})");
  assert_int_equal(load_config(path).settings_for(node("Conv", "a"))->activation.get_int("reduce_range", 0), 1);
  write_file(path, R"({"recipe": "tflite"})");
  assert_string_equal(load_config(path).name().c_str(), "tflite");

  struct Case {
    qstatus status;
    const char *message, *text;
  };
  const Case cases[] = {
      {QTN_EFORMAT, "is no JSON at byte", ""},
      {QTN_EFORMAT, "is no JSON at byte", R"({"recipe": "onnx",})"},
      {QTN_EFORMAT, "a number does not belong here", "3"},
      {QTN_EFORMAT, "\"recipe\" is missing", "{}"},
      {QTN_EFORMAT, "unknown member \"rule\"; valid are: recipe rules", R"({"recipe": "onnx", "rule": []})"},
      {QTN_EFORMAT, "\"recipe\" is there twice", R"({"recipe": "onnx", "recipe": "onnx"})"},
      {QTN_EFORMAT, "\"rules\": an object does not belong here", R"({"recipe": "onnx", "rules": {}})"},
      {QTN_EFORMAT, "rule 2: a text does not belong", R"({"rules": [{"selector": "*", "settings": null}, "x"]})"},
      {QTN_EFORMAT, "rule 1: \"settings\" is missing", R"({"recipe": "onnx", "rules": [{"selector": "*"}]})"},
      {QTN_EFORMAT, "rule 1: unknown member \"set\"; valid are: selector settings", R"({"rules": [{"set": 1}]})"},
      {QTN_EFORMAT, "rule 1: \"bins\" is there twice",
       R"({"rules": [{"selector": "*", "settings": {"bins": 64, "bins": 64}}]})"},
      {QTN_EFORMAT, "rule 1: a list does not belong", R"({"rules": [{"selector": "*", "settings": {"bins": [64]}}]})"},
      {QTN_EFORMAT, "over 63 bits", R"({"rules": [{"selector": "*", "settings": {"bins": 9999999999999999999}}]})"},
      {QTN_EUNSUPPORTED, "hand.json: config: recipe \"abacus\"", R"({"recipe": "abacus"})"},
      {QTN_EINVAL, "hand.json: rule 2: config: unknown attribute \"bin\"",
       R"({"recipe": "onnx", "rules": [{"selector": "*", "settings": {}}, {"selector": "*", "settings": {"bin": 1}}]})"},
  };
  for (const Case &c : cases) {
    write_file(path, c.text);
    expect_error(c.status, c.message, [&] { load_config(path); });
  }
  std::filesystem::remove(path);
  expect_error(QTN_EIO, "hand.json", [&] { load_config(path); });
}

/// Cut anywhere, a file is refused, not read in part.
void cut_files(void **) {
  const std::string path = in_folder("cut.json");
  const std::string text = R"({"recipe": "onnx", "rules": [{"selector": "op:Conv", "settings": {"bins": 64}}]})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    write_file(path, text.substr(0, size));
    expect_error(QTN_EFORMAT, "cut.json", [&] { load_config(path); });
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace qtn::quant

int main() {
  using namespace qtn::quant;
  const CMUnitTest tests[] = {cmocka_unit_test(recipes),
                              cmocka_unit_test(most_specific_wins),
                              cmocka_unit_test(keys_merge),
                              cmocka_unit_test(globs),
                              cmocka_unit_test(bad_settings),
                              cmocka_unit_test(settings_of_all_count),
                              cmocka_unit_test(another_observer_forgets_the_given_grid),
                              cmocka_unit_test(files_round_trip),
                              cmocka_unit_test(files_by_hand),
                              cmocka_unit_test(cut_files)};
  return cmocka_run_group_tests_name("config", tests, nullptr, nullptr);
}
