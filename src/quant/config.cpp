// SPDX-License-Identifier: Apache-2.0
#include "quant/config.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"

namespace qtn::quant {
namespace {

constexpr AttrSpec kKeys[] = {
    {"observer", AttrSpec::kString},
    {"weight_observer", AttrSpec::kString},
    {"activation_dtype", AttrSpec::kString},
    {"activation_scheme", AttrSpec::kString},
    {"weight_dtype", AttrSpec::kString},
    {"weight_scheme", AttrSpec::kString},
    {"weight_narrow_range", AttrSpec::kInt},
    {"reduce_range", AttrSpec::kInt},
    {"weight_reduce_range", AttrSpec::kInt},
    {"numerics", AttrSpec::kString},
    {"fixed_outputs", AttrSpec::kInt},
    {"equalize", AttrSpec::kInt},
    {"averaging_constant", AttrSpec::kFloat},
    {"bins", AttrSpec::kInt},
    {"eps", AttrSpec::kFloat},
};

Attrs onnx_recipe() {
  Attrs a;
  a.set("observer", "minmax");
  a.set("weight_observer", "minmax");
  a.set("activation_dtype", "uint8");
  a.set("activation_scheme", "per_tensor_affine");
  a.set("weight_dtype", "int8");
  a.set("weight_scheme", "per_channel_symmetric");
  a.set("weight_narrow_range", std::int64_t{1});
  a.set("reduce_range", std::int64_t{0});
  a.set("numerics", "onnx");
  a.set("fixed_outputs", std::int64_t{0});
  return a;
}

Attrs fbgemm_recipe() {
  Attrs a = onnx_recipe();
  a.set("observer", "histogram");
  a.set("weight_narrow_range", std::int64_t{0});
  a.set("reduce_range", std::int64_t{1});
  a.set("numerics", "fbgemm");
  a.set("fixed_outputs", std::int64_t{1});
  return a;
}

struct Recipe {
  std::string_view name;
  Attrs (*make)();
};
constexpr Recipe kRecipes[] = {{"onnx", onnx_recipe}, {"fbgemm", fbgemm_recipe}};

struct SelectorForm {
  std::string_view prefix;
  int rank;
};
constexpr SelectorForm kForms[] = {{"op:", 1}, {"name:", 2}, {"node:", 3}};

void require(const Attrs &attrs, std::string_view key, std::initializer_list<std::string_view> allowed) {
  const std::string value = attrs.get_string(key, "");
  std::string known;
  for (const std::string_view a : allowed) {
    if (value == a) return;
    known += cat(" ", a);
  }
  fail(QTN_EUNSUPPORTED, "config: ", key, " \"", value, "\" is not offered; there are:", known);
}

Settings resolve(const Attrs &attrs) {
  require(attrs, "activation_dtype", {"uint8", "int8"});
  require(attrs, "activation_scheme", {"per_tensor_affine", "per_tensor_symmetric"});
  require(attrs, "weight_dtype", {"int8"});
  require(attrs, "weight_scheme", {"per_channel_symmetric", "per_tensor_symmetric"});
  require(attrs, "numerics", {"fbgemm", "qnnpack", "onnx"});
  Settings s;
  s.activation_observer = attrs.get_string("observer", "");
  s.weight_observer = attrs.get_string("weight_observer", "");
  s.fixed_outputs = attrs.get_int("fixed_outputs", 0) != 0;
  s.equalize = attrs.get_int("equalize", 0) != 0;
  for (const char *key : {"numerics", "averaging_constant", "bins", "eps"}) {
    const auto item = std::find_if(attrs.begin(), attrs.end(), [&](const auto &i) { return i.first == key; });
    if (item == attrs.end()) continue;
    s.activation.set(key, item->second);
    s.weight.set(key, item->second);
  }
  const bool symmetric = attrs.get_string("activation_scheme", "") == "per_tensor_symmetric";
  s.activation.set("dtype", attrs.get_string("activation_dtype", ""));
  s.activation.set("scheme", attrs.get_string("activation_scheme", ""));
  s.activation.set("reduce_range", attrs.get_int("reduce_range", 0));
  // ONNX Runtime's symmetric int8 grid is -127..127 for activations too.
  s.activation.set("narrow_range", std::int64_t{symmetric && attrs.get_string("numerics", "") == "onnx"});
  s.weight.set("dtype", attrs.get_string("weight_dtype", ""));
  s.weight.set("scheme", attrs.get_string("weight_scheme", ""));
  s.weight.set("reduce_range", attrs.get_int("weight_reduce_range", 0));
  s.weight.set("narrow_range", attrs.get_int("weight_narrow_range", 0));
  return s;
}

void overlay(Attrs &attrs, const Attrs &with) {
  for (const auto &[key, value] : with) attrs.set(key, value);
}

/// * any run of characters, ? any one.
bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(), [](char c) { return c == '*'; });
}

}  // namespace

Config::Config(const std::string &name) : name_(name) {
  std::string known;
  for (const Recipe &recipe : kRecipes) {
    known += cat(" ", recipe.name);
    if (recipe.name != name) continue;
    base_ = recipe.make();
    return;
  }
  fail(QTN_EUNSUPPORTED, "config: there is no recipe \"", name, "\"; there are:", known);
}

void Config::set(const std::string &selector, const Attrs *settings) {
  Rule rule{0, "", std::nullopt};
  if (selector != "*") {
    for (const SelectorForm &form : kForms) {
      if (selector.size() <= form.prefix.size() || !selector.starts_with(form.prefix)) continue;
      rule.rank = form.rank;
      rule.pattern = selector.substr(form.prefix.size());
    }
    if (rule.rank == 0)
      fail(QTN_EINVAL, "config: selector \"", selector, "\" is none of * op:TYPE name:GLOB node:NAME");
    if (rule.rank == 1 && !ops::find_op(rule.pattern))
      fail(QTN_EINVAL, "config: selector \"", selector, "\": there is no operator ", rule.pattern);
  }
  if (settings) {
    settings->check(kKeys, "config");
    Attrs trial = base_;
    overlay(trial, *settings);
    const Settings resolved = resolve(trial);
    make_observer(resolved.activation_observer, resolved.activation);
    make_observer(resolved.weight_observer, resolved.weight);
    rule.attrs = *settings;
  }
  const auto after =
      std::upper_bound(rules_.begin(), rules_.end(), rule.rank, [](int rank, const Rule &r) { return rank < r.rank; });
  rules_.insert(after, std::move(rule));
}

bool Config::matches(const Rule &rule, const graph::Node &node) {
  switch (rule.rank) {
    case 0:
      return true;
    case 1:
      return rule.pattern == node.op->name;
    case 2:
      return glob_matches(rule.pattern, node.name);
    default:
      return rule.pattern == node.name;
  }
}

std::optional<Settings> Config::settings_for(const graph::Node &node) const {
  Attrs attrs = base_;
  bool in_float = false;
  for (const Rule &rule : rules_) {
    if (!matches(rule, node)) continue;
    in_float = !rule.attrs;
    if (rule.attrs) overlay(attrs, *rule.attrs);
  }
  if (in_float) return std::nullopt;
  return resolve(attrs);
}

}  // namespace qtn::quant
