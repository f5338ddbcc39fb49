// SPDX-License-Identifier: Apache-2.0
#include "core/attrs.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace qtn {
namespace {

constexpr const char *kKindNames[] = {"an int", "a float",  "a string",         "ints",
                                      "floats", "a tensor", "names with commas"};

template <class T>
T value_of(const Attr *attr, std::string_view key, AttrSpec::Kind wanted, const T &fallback) {
  if (!attr) return fallback;
  if (const T *value = std::get_if<T>(attr)) return *value;
  fail(QTN_EINVAL, "attribute \"", key, "\" is ", kKindNames[attr->index()], ", not ", kKindNames[wanted]);
}

}  // namespace

void Attrs::set(std::string key, Attr value) { items_.insert_or_assign(std::move(key), std::move(value)); }

bool Attrs::erase(std::string_view key) {
  const auto at = items_.find(key);
  if (at == items_.end()) return false;
  items_.erase(at);
  return true;
}

const Attr *Attrs::find(std::string_view key) const {
  const auto at = items_.find(key);
  return at == items_.end() ? nullptr : &at->second;
}

std::int64_t Attrs::get_int(std::string_view key, std::int64_t fallback) const {
  return value_of(find(key), key, AttrSpec::kInt, fallback);
}

double Attrs::get_float(std::string_view key, double fallback) const {
  const Attr *attr = find(key);
  if (attr)
    if (const auto *integer = std::get_if<std::int64_t>(attr)) return static_cast<double>(*integer);
  return value_of(attr, key, AttrSpec::kFloat, fallback);
}

std::string Attrs::get_string(std::string_view key, const std::string &fallback) const {
  return value_of(find(key), key, AttrSpec::kString, fallback);
}

std::vector<std::int64_t> Attrs::get_ints(std::string_view key, const std::vector<std::int64_t> &fallback) const {
  return value_of(find(key), key, AttrSpec::kInts, fallback);
}

std::vector<double> Attrs::get_floats(std::string_view key, const std::vector<double> &fallback) const {
  return value_of(find(key), key, AttrSpec::kFloats, fallback);
}

std::vector<std::string> Attrs::get_strings(std::string_view key) const {
  const std::string text = get_string(key, "");
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size() || (at == text.size() && at > 0);) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    names.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

const Tensor *Attrs::get_tensor(std::string_view key) const {
  const Attr *attr = find(key);
  return attr ? std::get_if<Tensor>(attr) : nullptr;
}

void Attrs::check(std::span<const AttrSpec> specs, std::string_view who) const {
  for (const auto &item : items_) {
    const std::string &key = item.first;
    const Attr &value = item.second;
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const AttrSpec &s) { return s.name == key; });
    if (spec == specs.end()) {
      std::string valid;
      for (const AttrSpec &s : specs)
        if (s.name[0] != '_') valid.append(" ").append(s.name);  // those are between parts of the library
      fail(QTN_EINVAL, who, ": unknown attribute \"", key, "\"; valid are:", valid.empty() ? " none" : valid);
    }
    const bool int_for_float = spec->kind == AttrSpec::kFloat && value.index() == AttrSpec::kInt;
    const AttrSpec::Kind stored = spec->kind == AttrSpec::kStrings ? AttrSpec::kString : spec->kind;
    if (value.index() != static_cast<std::size_t>(stored) && !int_for_float)
      fail(QTN_EINVAL, who, ": attribute \"", key, "\" must be ", kKindNames[spec->kind], ", not ",
           kKindNames[value.index()]);
  }
}

}  // namespace qtn
