// SPDX-License-Identifier: Apache-2.0
#include "quant/recipes.hpp"

#include "base/error.hpp"
#include "base/find_named.hpp"

namespace qtn::quant {
namespace {

struct Activations {
  const char *observer, *dtype, *scheme;
  bool reduce_range, fixed_outputs;
};

struct Weights {
  const char *observer, *scheme;
  bool narrow_range;
  const char *bias = "int32";
};

struct Recipe {
  std::string_view name;
  const char *numerics;
  Activations activations;
  Weights weights;
  bool of_torchvision = false;  ///< quantized in eager mode, between stubs, with its ReLU6 replaced
};

// docs/quantization.md says whose defaults these are.
constexpr Recipe kRecipes[] = {
    {"onnx", "onnx", {"minmax", "uint8", "per_tensor_affine", false, false}, {"minmax", "per_channel_symmetric", true}},
    {"fbgemm",
     "fbgemm",
     {"histogram", "uint8", "per_tensor_affine", true, true},
     {"minmax", "per_channel_symmetric", false}},
    {"x86",
     "fbgemm",
     {"histogram", "uint8", "per_tensor_affine", true, true},
     {"minmax", "per_channel_symmetric", false}},
    {"qnnpack",
     "qnnpack",
     {"histogram", "uint8", "per_tensor_affine", false, true},
     {"minmax", "per_tensor_symmetric", false}},
    {"onednn",
     "fbgemm",
     {"histogram", "uint8", "per_tensor_affine", false, true},
     {"minmax", "per_channel_symmetric", false}},
    {"nvidia",
     "nvidia",
     {"max", "int8", "per_tensor_symmetric", false, false},
     {"max", "per_channel_symmetric", true, "float32"}},
    {"tflite",
     "tflite",
     {"minmax", "int8", "per_tensor_affine", false, true},
     {"minmax", "per_channel_symmetric", true}},
    // default_observer has 0..127 for both backends, and QNNPACK's numerics would leave reduce_range out.
    {"torchvision_fbgemm",
     "fbgemm",
     {"minmax", "uint8", "per_tensor_affine", true, true},
     {"minmax", "per_channel_symmetric", false},
     true},
    {"torchvision_qnnpack",
     "fbgemm",
     {"minmax", "uint8", "per_tensor_affine", true, true},
     {"minmax", "per_tensor_symmetric", false},
     true},
};

Attrs settings_of(const Recipe &recipe) {
  const std::pair<const char *, const char *> names[] = {{"numerics", recipe.numerics},
                                                         {"observer", recipe.activations.observer},
                                                         {"activation_dtype", recipe.activations.dtype},
                                                         {"activation_scheme", recipe.activations.scheme},
                                                         {"weight_observer", recipe.weights.observer},
                                                         {"attention", recipe.name == "onnx" ? "auto" : "float"},
                                                         {"weight_dtype", "int8"},
                                                         {"weight_scheme", recipe.weights.scheme},
                                                         {"bias", recipe.weights.bias}};
  const std::pair<const char *, bool> switches[] = {{"reduce_range", recipe.activations.reduce_range},
                                                    {"fixed_outputs", recipe.activations.fixed_outputs},
                                                    {"weight_narrow_range", recipe.weights.narrow_range}};
  Attrs a;
  for (const auto &[key, name] : names) a.set(key, name);
  for (const auto &[key, on] : switches) a.set(key, std::int64_t{on});
  if (recipe.of_torchvision)
    for (const char *key : {"quantize_outputs", "replace_relu6", "pools_keep_grid"}) a.set(key, std::int64_t{1});
  return a;
}

}  // namespace

Attrs recipe(const std::string &name) {
  return settings_of(find_named(kRecipes, name, "config", "recipe", &Recipe::name, QTN_EUNSUPPORTED));
}

}  // namespace qtn::quant
