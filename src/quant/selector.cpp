// SPDX-License-Identifier: Apache-2.0
#include "quant/selector.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace qtn::quant {
namespace {

struct Form {
  std::string_view prefix;
  Selector::Kind kind;
};
constexpr Form kForms[] = {
    {"op:", Selector::kOp}, {"name:", Selector::kName}, {"node:", Selector::kNode}, {"tensor:", Selector::kTensor}};

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

Selector::Selector(const std::string &text) : text_(text) {
  if (text == "*") return;
  for (const Form &form : kForms) {
    if (text.size() <= form.prefix.size() || !text.starts_with(form.prefix)) continue;
    kind_ = form.kind;
    pattern_ = text.substr(form.prefix.size());
  }
  if (kind_ == kAll)
    fail(QTN_EINVAL, "config: selector \"", text, "\" is none of * op:TYPE name:GLOB node:NAME tensor:NAME");
  if (kind_ == kOp && !ops::find_op(pattern_))
    fail(QTN_EINVAL, "config: selector \"", text, "\": there is no operator ", pattern_);
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
      return false;
  }
  return false;
}

}  // namespace qtn::quant
