// SPDX-License-Identifier: Apache-2.0
// Names that are used only once.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace qtn::graph {

class UniqueNames {
 public:
  /// Whether the name was free until now; it is taken afterwards.
  bool take(const std::string &name) { return taken_.insert(name).second; }

  /// `wanted`, or `wanted` with the first free number behind it.
  std::string make(const std::string &wanted) {
    std::string name = wanted;
    for (std::size_t &next = next_[wanted]; !take(name);) name = wanted + "_" + std::to_string(++next);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::size_t> next_;
};

}  // namespace qtn::graph
