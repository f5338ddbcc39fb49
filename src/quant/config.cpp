// SPDX-License-Identifier: Apache-2.0
#include "quant/config.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/find_named.hpp"
#include "quant/descriptors.hpp"
#include "quant/recipes.hpp"

namespace qtn::quant {
namespace {

constexpr AttrSpec kKeys[] = {
    // For one tensor only:
    {"quantize", AttrSpec::kInt},
    // For the grid of an activation:
    {"observer", AttrSpec::kString},
    {"activation_dtype", AttrSpec::kString},
    {"activation_scheme", AttrSpec::kString},
    {"activation_bits", AttrSpec::kInt},
    {"reduce_range", AttrSpec::kInt},
    {"fixed_outputs", AttrSpec::kInt},
    {"scale", AttrSpec::kFloat},
    {"zero_point", AttrSpec::kInt},
    {"min", AttrSpec::kFloat},
    {"max", AttrSpec::kFloat},
    {"numerics", AttrSpec::kString},
    {"averaging_constant", AttrSpec::kFloat},
    {"bins", AttrSpec::kInt},
    {"eps", AttrSpec::kFloat},
    {"percentile", AttrSpec::kFloat},
    {"absolute", AttrSpec::kInt},
    {"activation_learning", AttrSpec::kString},
    {"scale_amax", AttrSpec::kFloat},
    {"margin", AttrSpec::kFloat},
    {"quant_desc_input", AttrSpec::kString},
    // For layers:
    {"mode", AttrSpec::kString},
    {"attention", AttrSpec::kString},
    {"quantize_outputs", AttrSpec::kInt},
    {"equalize", AttrSpec::kInt},
    {"replace_relu6", AttrSpec::kInt},
    {"pools_keep_grid", AttrSpec::kInt},
    {"fused_fake_quant", AttrSpec::kInt},
    {"weight_observer", AttrSpec::kString},
    {"weight_dtype", AttrSpec::kString},
    {"weight_bits", AttrSpec::kInt},
    {"weight_scheme", AttrSpec::kString},
    {"weight_narrow_range", AttrSpec::kInt},
    {"weight_reduce_range", AttrSpec::kInt},
    {"block_size", AttrSpec::kInt},
    {"weight_learning", AttrSpec::kString},
    {"weight_scale_amax", AttrSpec::kFloat},
    {"quant_desc_weight", AttrSpec::kString},
    {"bias", AttrSpec::kString},
};
constexpr std::span kTensorKeys = std::span(kKeys).first(21);
constexpr std::span kNodeKeys = std::span(kKeys).subspan(1);

/// Keys of a configuration, and what make_observer calls them.
struct Renamed {
  std::string_view key, of_observer;
};
constexpr Renamed kActivation[] = {{"activation_dtype", "dtype"},
                                   {"activation_scheme", "scheme"},
                                   {"reduce_range", "reduce_range"},
                                   {"scale_amax", "scale_amax"}};
constexpr Renamed kWeight[] = {{"weight_scheme", "scheme"},
                               {"weight_reduce_range", "reduce_range"},
                               {"weight_narrow_range", "narrow_range"},
                               {"weight_scale_amax", "scale_amax"}};
constexpr Renamed kBoth[] = {{"numerics", "numerics"},
                             {"averaging_constant", "averaging_constant"},
                             {"bins", "bins"},
                             {"eps", "eps"},
                             {"percentile", "percentile"},
                             {"absolute", "absolute"}};
constexpr Renamed kGiven[] = {{"scale", "scale"}, {"zero_point", "zero_point"}, {"min", "min"}, {"max", "max"}};
constexpr Renamed kBlocks[] = {{"block_size", "block_size"}};

constexpr double kMostMargin = 10;

void require(const Attrs &attrs, std::string_view key, std::initializer_list<std::string_view> allowed) {
  find_named(allowed, attrs.get_string(key, ""), "config", key, {}, QTN_EUNSUPPORTED);
}

void copy_keys(Attrs &to, const Attrs &from, std::span<const Renamed> keys) {
  for (const auto &[name, value] : from)
    for (const Renamed &key : keys)
      if (name == key.key) to.set(std::string(key.of_observer), value);
}

bool in_blocks(const Attrs &attrs) { return attrs.get_string("weight_scheme", "") == "per_block_symmetric"; }

std::int64_t bits_of(const Attrs &attrs, std::string_view key, std::int64_t unless_given) {
  const std::int64_t bits = attrs.get_int(key, unless_given);
  if (bits < 2 || bits > 8) fail(QTN_EINVAL, "config: ", key, " is ", bits, ", not from 2 to 8");
  return bits;
}

/// Integers of so many bits, for the observer, of a type of `width` bits.
void limit_bits(Attrs &to, std::int64_t bits, std::int64_t width, bool is_signed) {
  if (bits == width) return;
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  to.set("quant_min", is_signed ? -half : 0);
  to.set("quant_max", is_signed ? half - 1 : 2 * half - 1);
}

void limit_activations(Attrs &to, const Attrs &attrs) {
  if (!attrs.has("activation_bits")) return;
  const std::string dtype = attrs.get_string("activation_dtype", "");
  if (dtype != "uint8" && dtype != "int8")
    fail(QTN_EUNSUPPORTED, "config: activation_bits is for types of 8 bits, not for ", dtype);
  limit_bits(to, bits_of(attrs, "activation_bits", 8), 8, dtype == "int8");
}

/// Weights have the narrowest type that holds their bits: activations move through kernels, which know 8, but weights
/// are stored.
void choose_weight_type(Attrs &to, const Attrs &attrs) {
  const bool int4 = attrs.get_string("weight_dtype", "") == "int4";
  const std::int64_t bits = bits_of(attrs, "weight_bits", int4 ? 4 : 8);
  if (int4 && bits > 4) fail(QTN_EINVAL, "config: weight_bits is ", bits, ", weight_dtype \"int4\" has 4");
  const std::int64_t width = bits > 4 ? 8 : bits > 2 ? 4 : 2;
  to.set("dtype", cat("int", width));
  limit_bits(to, bits, width, true);
}

Attrs activation_settings(const Attrs &attrs) {
  require(attrs, "activation_dtype", {"uint8", "int8", "int16"});
  require(attrs, "activation_scheme", {"per_tensor_affine", "per_tensor_symmetric"});
  Attrs a;
  copy_keys(a, attrs, kActivation);
  copy_keys(a, attrs, kBoth);
  if (attrs.get_string("observer", "") == "fixed") copy_keys(a, attrs, kGiven);
  // ONNX Runtime's symmetric grids are -127..127 and -32767..32767 for activations too.
  const bool symmetric = attrs.get_string("activation_scheme", "") == "per_tensor_symmetric";
  limit_activations(a, attrs);
  a.set("narrow_range", std::int64_t{symmetric && attrs.get_string("numerics", "") == "onnx"});
  return a;
}

Attrs weight_settings(const Attrs &attrs) {
  require(attrs, "weight_dtype", {"int8", "int4"});
  require(attrs, "weight_scheme", {"per_channel_symmetric", "per_tensor_symmetric", "per_block_symmetric"});
  if (in_blocks(attrs) && !attrs.has("block_size"))
    fail(QTN_EINVAL, "config: weight_scheme \"per_block_symmetric\" needs block_size");
  Attrs w;
  copy_keys(w, attrs, kWeight);
  copy_keys(w, attrs, kBoth);
  if (in_blocks(attrs)) copy_keys(w, attrs, kBlocks);
  choose_weight_type(w, attrs);
  return w;
}

bool float_bias(const Attrs &attrs) {
  require(attrs, "bias", {"int32", "float32"});
  return attrs.get_string("bias", "") == "float32";
}

Mode mode_of(const Attrs &attrs) {
  if (!attrs.has("mode")) return Mode::fixed;
  require(attrs, "mode", {"static", "dynamic", "weights_only"});
  const std::string mode = attrs.get_string("mode", "");
  return mode == "static" ? Mode::fixed : mode == "dynamic" ? Mode::dynamic : Mode::weights_only;
}

double margin_of(const Attrs &attrs) {
  const double margin = attrs.get_float("margin", 0);
  if (!(margin >= 0 && margin <= kMostMargin))
    fail(QTN_EINVAL, "config: margin is ", margin, ", not from 0 to ", kMostMargin);
  return margin;
}

graph::AttentionMode attention_mode(const Attrs &attrs) {
  require(attrs, "attention", {"float", "auto", "dynamic"});
  const std::string mode = attrs.get_string("attention", "");
  return mode == "float"  ? graph::AttentionMode::in_float
         : mode == "auto" ? graph::AttentionMode::automatic
                          : graph::AttentionMode::dynamic;
}

struct LearningKind {
  std::string_view name;
  Learning learning;
};
constexpr LearningKind kActivationLearning[] = {{"none", Learning::none},
                                                {"lsq", Learning::lsq},
                                                {"lsq+", Learning::lsq_plus},
                                                {"pact", Learning::pact},
                                                {"amax", Learning::amax}};
constexpr LearningKind kWeightLearning[] = {{"none", Learning::none}, {"lsq", Learning::lsq}, {"amax", Learning::amax}};

Learning learning_of(const Attrs &attrs, std::string_view key, std::span<const LearningKind> kinds) {
  return find_named(kinds, attrs.get_string(key, "none"), "config", key, &LearningKind::name).learning;
}

[[noreturn]] void refuse(const Attrs &attrs, std::string_view key, std::string_view why) {
  fail(QTN_EUNSUPPORTED, "config: ", key, " \"", attrs.get_string(key, ""), "\" ", why);
}

Learning activation_learning(const Attrs &attrs) {
  constexpr std::string_view key = "activation_learning";
  const Learning learning = learning_of(attrs, key, kActivationLearning);
  if (learning == Learning::none) return learning;
  const bool symmetric = attrs.get_string("activation_scheme", "") == "per_tensor_symmetric";
  if (symmetric && (learning == Learning::lsq_plus || learning == Learning::pact))
    refuse(attrs, key, "is for activation_scheme \"per_tensor_affine\", here it is \"per_tensor_symmetric\"");
  if (!symmetric && learning == Learning::amax)
    refuse(attrs, key, "is for activation_scheme \"per_tensor_symmetric\", here it is \"per_tensor_affine\"");
  if (attrs.get_int("reduce_range", 0) != 0)
    refuse(attrs, key, "needs reduce_range 0: what is learned is where all integers of the type end");
  return learning;
}

Learning weight_learning(const Attrs &attrs) {
  constexpr std::string_view key = "weight_learning";
  const Learning learning = learning_of(attrs, key, kWeightLearning);
  if (learning == Learning::none) return learning;
  const std::string scheme = attrs.get_string("weight_scheme", "");
  if (in_blocks(attrs)) refuse(attrs, key, "is for scales per tensor or channel, not for \"per_block_symmetric\"");
  if (learning == Learning::amax && scheme != "per_tensor_symmetric")
    refuse(attrs, key, cat("is for weight_scheme \"per_tensor_symmetric\", here it is \"", scheme, "\""));
  if (attrs.get_int("weight_reduce_range", 0) != 0)
    refuse(attrs, key, "needs weight_reduce_range 0: what is learned is where all integers of the type end");
  return learning;
}

/// PyTorch's fused module moves a range and nothing else.
bool fused_fake_quant(const Attrs &attrs) {
  if (attrs.get_int("fused_fake_quant", 0) == 0) return false;
  for (const std::string_view key : {"activation_learning", "weight_learning"})
    if (attrs.get_string(key, "none") != "none") refuse(attrs, key, "needs fused_fake_quant 0");
  if (in_blocks(attrs)) refuse(attrs, "weight_scheme", "needs fused_fake_quant 0");
  return true;
}

Settings resolve(const Attrs &attrs) {
  return {.mode = mode_of(attrs),
          .activation_observer = attrs.get_string("observer", ""),
          .weight_observer = attrs.get_string("weight_observer", ""),
          .activation = activation_settings(attrs),
          .weight = weight_settings(attrs),
          .margin = margin_of(attrs),
          .equalize = attrs.get_int("equalize", 0) != 0,
          .attention = attention_mode(attrs),
          .fixed_outputs = attrs.get_int("fixed_outputs", 0) != 0,
          .quantize_outputs = attrs.get_int("quantize_outputs", 0) != 0,
          .replace_relu6 = attrs.get_int("replace_relu6", 0) != 0,
          .float_bias = float_bias(attrs),
          .pools_keep_grid = attrs.get_int("pools_keep_grid", 0) != 0,
          .fused_fake_quant = fused_fake_quant(attrs),
          .activation_learning = activation_learning(attrs),
          .weight_learning = weight_learning(attrs),
          .keys = attrs};
}

/// Settings with what NVIDIA's descriptors say, where they say nothing themselves.
Attrs expanded(const Attrs &settings) {
  Attrs attrs;
  if (const std::string name = settings.get_string("quant_desc_input", ""); !name.empty()) {
    const Descriptor &d = descriptor(name, "config");
    if (d.axis >= 0) refuse(settings, "quant_desc_input", "is per channel, and activations have one grid");
    attrs.set("activation_dtype", d.is_signed ? "int8" : "uint8");
    attrs.set("activation_scheme", "per_tensor_symmetric");
  }
  if (const std::string name = settings.get_string("quant_desc_weight", ""); !name.empty()) {
    const Descriptor &d = descriptor(name, "config");
    if (!d.is_signed) refuse(settings, "quant_desc_weight", "is unsigned, and weights are signed");
    attrs.set("weight_dtype", "int8");
    attrs.set("weight_scheme", d.axis < 0 ? "per_tensor_symmetric" : "per_channel_symmetric");
  }
  for (const auto &[key, value] : settings)
    if (!key.starts_with("quant_desc_")) attrs.set(key, value);
  return attrs;
}

constexpr std::string_view kQuantize = "quantize";

/// What is 16 bits wide has all of them, also where other values have fewer than 8.
void overlay(Attrs &attrs, const Attrs &with) {
  if (with.get_string("activation_dtype", "") == "int16") attrs.erase("activation_bits");
  for (const auto &[key, value] : with) attrs.set(key, value);
}

}  // namespace

Config::Config(const std::string &name) : name_(name), base_(recipe(name)) {}

/// Together with what is said of all nodes, the settings must make sense.
void Config::check(const Attrs &settings) const {
  Attrs trial = settings_for_all().keys;
  overlay(trial, settings);
  const Settings resolved = resolve(trial);
  for (const auto &[key, name] : kGiven)
    if (settings.has(key) && resolved.activation_observer != "fixed")
      fail(QTN_EINVAL, "config: ", key, " is of the observer \"fixed\", the observer here is \"",
           resolved.activation_observer, "\"");
  if (settings.has("block_size") && !in_blocks(trial))
    fail(QTN_EINVAL, "config: block_size is of weight_scheme \"per_block_symmetric\", here it is \"",
         trial.get_string("weight_scheme", ""), "\"");
  make_observer(resolved.activation_observer, resolved.activation);
  make_observer(resolved.weight_observer, resolved.weight);
}

void Config::set(const std::string &selector, const Attrs *settings) {
  Rule rule{Selector(selector), std::nullopt};
  if (settings) {
    const bool tensor = rule.selector.kind() == Selector::kTensor;
    settings->check(tensor ? kTensorKeys : kNodeKeys, tensor ? "config: of a tensor" : "config");
    rule.settings = expanded(*settings);
    check(*rule.settings);
  } else if (rule.selector.kind() == Selector::kTensor) {
    fail(QTN_EINVAL, "config: selector \"", selector,
         "\": a tensor is in float if the nodes that read it are; select them");
  }
  const auto after = std::upper_bound(rules_.begin(), rules_.end(), rule, [](const Rule &a, const Rule &b) {
    return a.selector.kind() < b.selector.kind();
  });
  rules_.insert(after, std::move(rule));
}

std::optional<Settings> Config::settings_for(const graph::Node &node) const {
  Attrs attrs = base_;
  bool in_float = false;
  for (const Rule &rule : rules_) {
    if (!rule.selector.matches(node)) continue;
    in_float = !rule.settings;
    if (rule.settings) overlay(attrs, *rule.settings);
  }
  if (in_float) return std::nullopt;
  for (const Suggestion &suggestion : suggestions_)
    if (!attrs.has("mode") && suggestion.nodes(node)) attrs.set("mode", suggestion.mode);
  return resolve(attrs);
}

Settings Config::settings_for_all() const {
  Attrs attrs = base_;
  for (const Rule &rule : rules_)
    if (rule.selector.kind() == Selector::kAll && rule.settings) overlay(attrs, *rule.settings);
  return resolve(attrs);
}

bool Config::quantizes(std::string_view tensor, bool unless_said) const {
  bool quantizes = unless_said;
  for (const Rule &rule : rules_)
    if (rule.selector.kind() == Selector::kTensor && rule.selector.pattern() == tensor && rule.settings->has(kQuantize))
      quantizes = rule.settings->get_int(kQuantize, 0) != 0;
  return quantizes;
}

bool Config::names_tensor(std::string_view tensor) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule &rule) {
    return rule.selector.kind() == Selector::kTensor && rule.selector.pattern() == tensor;
  });
}

bool Config::selects(const graph::Node &node) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule &rule) {
    return rule.selector.kind() != Selector::kAll && rule.selector.matches(node);
  });
}

bool Config::says(std::string_view key) const {
  return std::any_of(rules_.begin(), rules_.end(),
                     [&](const Rule &rule) { return rule.settings && rule.settings->has(key); });
}

Settings Config::settings_for(const Settings &maker, std::span<const std::string_view> tensors) const {
  Attrs attrs = maker.keys;
  bool refined = false, spoken = false;
  for (const Rule &rule : rules_) {
    const bool named = std::find(tensors.begin(), tensors.end(), rule.selector.pattern()) != tensors.end();
    if (rule.selector.kind() != Selector::kTensor || !named) continue;
    // A rule for the grid of one tensor is not overruled by what holds for its operator.
    const bool of_grid = rule.settings->size() > (rule.settings->has(kQuantize) ? 1u : 0u);
    if (of_grid && !spoken) attrs.set("fixed_outputs", std::int64_t{0});
    spoken = spoken || of_grid;
    overlay(attrs, *rule.settings);
    refined = true;
  }
  return refined ? resolve(attrs) : maker;
}

}  // namespace qtn::quant
