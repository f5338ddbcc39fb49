// SPDX-License-Identifier: Apache-2.0
#include "quant/selector.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "ops/custom.hpp"

namespace qtn::quant {
namespace {

struct Form {
  std::string_view prefix, argument;
  Selector::Kind kind;
};
constexpr Form kForms[] = {{"op:", "TYPE", Selector::kOp},
                           {"name:", "GLOB", Selector::kName},
                           {"node:", "NAME", Selector::kNode},
                           {"tensor:", "NAME", Selector::kTensor},
                           {"parameter:", "GLOB", Selector::kParameter}};

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

Selector::Selector(const std::string &text, std::string_view who, Kind most) : text_(text) {
  if (text == "*") return;
  std::string forms = "*";
  for (const Form &form : kForms) {
    if (form.kind > most) continue;
    forms += cat(" ", form.prefix, form.argument);
    if (text.size() <= form.prefix.size() || !text.starts_with(form.prefix)) continue;
    kind_ = form.kind;
    pattern_ = text.substr(form.prefix.size());
  }
  if (kind_ == kAll) fail(QTN_EINVAL, who, ": selector \"", text, "\" is none of ", forms);
  if (kind_ == kOp && !ops::find_op(pattern_) && !ops::find_registered(pattern_))
    fail(QTN_EINVAL, who, ": selector \"", text, "\": there is no operator ", pattern_);
}

bool Selector::matches(const graph::Node &node) const {
  switch (kind_) {
    case kAll:
      return true;
    case kOp:
      return pattern_ == node.op->name;
    case kName:
      return glob_matches(pattern_, node.name);
    case kNode:
      return pattern_ == node.name;
    case kTensor:
    case kParameter:
      return false;
  }
  return false;
}

bool Selector::matches_parameter(std::string_view name) const {
  return kind_ == kParameter && glob_matches(pattern_, name);
}

}  // namespace qtn::quant
