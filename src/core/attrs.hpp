// SPDX-License-Identifier: Apache-2.0
// Named options: the attributes of an operator, the settings of a recipe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tensor.hpp"

namespace qtn {

using Attr = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>, Tensor>;

/// One key an operator or recipe knows: its name and which alternative of Attr it holds. A list of names is one string
/// with commas between them.
struct AttrSpec {
  std::string_view name;
  enum Kind { kInt, kFloat, kString, kInts, kFloats, kTensor, kStrings } kind;
};

class Attrs {
 public:
  void set(std::string key, Attr value);
  bool erase(std::string_view key);
  bool has(std::string_view key) const { return items_.find(key) != items_.end(); }

  /// The value, or the fallback where the key is absent. Throws QTN_EINVAL when the value is of another kind (an int is
  /// accepted for a float).
  std::int64_t get_int(std::string_view key, std::int64_t fallback) const;
  double get_float(std::string_view key, double fallback) const;
  std::string get_string(std::string_view key, const std::string &fallback) const;
  std::vector<std::int64_t> get_ints(std::string_view key, const std::vector<std::int64_t> &fallback = {}) const;
  std::vector<double> get_floats(std::string_view key, const std::vector<double> &fallback = {}) const;
  std::vector<std::string> get_strings(std::string_view key) const;  ///< of a list of names
  const Tensor *get_tensor(std::string_view key) const;

  /// Throws QTN_EINVAL on a key that `specs` does not list (the message lists the valid ones) or a value of another
  /// kind.
  void check(std::span<const AttrSpec> specs, std::string_view who) const;

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::size_t size() const { return items_.size(); }

 private:
  const Attr *find(std::string_view key) const;
  std::map<std::string, Attr, std::less<>> items_;
};

}  // namespace qtn
