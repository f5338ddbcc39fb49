// SPDX-License-Identifier: Apache-2.0
#include "io/config_json.hpp"

#include "base/error.hpp"
#include "base/json_writer.hpp"
#include "io/json_events.hpp"

namespace qtn::io {
namespace {

std::string rule_json(const ConfigRule &rule) {
  JsonWriter json;
  json.begin_object();
  json.member("selector", rule.selector);
  json.key("settings");
  if (rule.settings) {
    json.begin_object();
    for (const auto &[key, value] : *rule.settings) {
      json.key(key);
      if (const auto *integer = std::get_if<std::int64_t>(&value))
        json.value(*integer);
      else if (const auto *real = std::get_if<double>(&value))
        json.value(*real);
      else
        json.value(std::get<std::string>(value));
    }
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json.take();
}

constexpr std::string_view kConfigMembers[] = {"recipe", "rules"}, kRuleMembers[] = {"selector", "settings"};

class ConfigReader final : public JsonEvents {
 public:
  explicit ConfigReader(const std::string &where) : where_(where) {}

  ConfigText take() {
    if (!(seen_ & 1)) fail(QTN_EFORMAT, where_, ": \"recipe\" is missing");
    return std::move(config_);
  }

  void null() override {
    if (place_ != kRule || key_ != "settings") refuse("null");
  }
  void boolean(bool truth) override { setting(std::int64_t{truth}, "a boolean"); }
  void integer(std::int64_t number) override { setting(number, "a number"); }
  void real(double number) override { setting(number, "a number"); }
  void text(std::string text) override {
    if (place_ == kConfig && key_ == "recipe")
      config_.recipe = std::move(text);
    else if (place_ == kRule && key_ == "selector")
      config_.rules.back().selector = std::move(text);
    else
      setting(std::move(text), "a text");
  }

  void begin_object() override {
    if (place_ == kRule && key_ == "settings") {
      config_.rules.back().settings.emplace();
      place_ = kSettings;
    } else if (place_ == kRules) {
      config_.rules.emplace_back();
      seen_in_rule_ = 0;
      place_ = kRule;
    } else if (place_ == kNothing) {
      place_ = kConfig;
    } else {
      refuse("an object");
    }
  }
  void end_object() override {
    if (place_ == kRule)
      for (unsigned i = 0; i < 2; ++i)
        if (!(seen_in_rule_ & (1u << i))) fail(QTN_EFORMAT, place(), ": \"", kRuleMembers[i], "\" is missing");
    place_ = place_ == kSettings ? kRule : place_ == kRule ? kRules : kNothing;
  }
  void begin_list() override {
    if (place_ != kConfig || key_ != "rules") refuse("a list");
    place_ = kRules;
  }
  void end_list() override { place_ = kConfig; }

  void key(std::string name) override {
    if (place_ == kSettings) {
      if (config_.rules.back().settings->has(name)) fail(QTN_EFORMAT, place(), ": \"", name, "\" is there twice");
      setting_ = std::move(name);
      return;
    }
    const std::string_view *members = place_ == kConfig ? kConfigMembers : kRuleMembers;
    unsigned &seen = place_ == kConfig ? seen_ : seen_in_rule_;
    const unsigned bit = name == members[0] ? 1 : name == members[1] ? 2 : 0;
    if (bit == 0)
      fail(QTN_EFORMAT, place(), ": unknown member \"", name, "\"; valid are: ", members[0], " ", members[1]);
    if (seen & bit) fail(QTN_EFORMAT, place(), ": \"", name, "\" is there twice");
    seen |= bit;
    key_ = std::move(name);
  }

  std::string place() const override {
    if (place_ == kNothing) return where_;
    if (place_ == kConfig) return key_.empty() ? where_ : cat(where_, ": \"", key_, "\"");
    return cat(where_, ": rule ", config_.rules.size() + (place_ == kRules));
  }

 private:
  enum Place { kNothing, kConfig, kRules, kRule, kSettings };

  void setting(Attr value, const char *what) {
    if (place_ != kSettings) refuse(what);
    config_.rules.back().settings->set(setting_, std::move(value));
  }

  [[noreturn]] void refuse(const char *what) const { fail(QTN_EFORMAT, place(), ": ", what, " does not belong here"); }

  const std::string &where_;
  ConfigText config_;
  Place place_ = kNothing;
  unsigned seen_ = 0, seen_in_rule_ = 0;  ///< a bit for each member
  std::string key_, setting_;
};

}  // namespace

std::string config_json(const ConfigText &config) {
  JsonWriter recipe;
  recipe.value(config.recipe);
  std::string text = cat("{\"recipe\": ", recipe.take(), ", \"rules\": [");
  for (std::size_t i = 0; i < config.rules.size(); ++i) text += cat(i ? ",\n  " : "\n  ", rule_json(config.rules[i]));
  return text + (config.rules.empty() ? "]}\n" : "\n]}\n");
}

ConfigText parse_config_json(std::string_view text, const std::string &where) {
  ConfigReader reader(where);
  parse_json(text, where, reader);
  return reader.take();
}

}  // namespace qtn::io
