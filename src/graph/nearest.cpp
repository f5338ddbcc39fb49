// SPDX-License-Identifier: Apache-2.0
#include "graph/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace qtn::graph {
namespace {

/// Characters to insert, remove or replace (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])}));
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string_view> names) {
  std::vector<std::pair<std::size_t, std::string_view>> by_distance;
  for (const std::string_view n : names) by_distance.emplace_back(distance(name, n), n);
  std::sort(by_distance.begin(), by_distance.end());
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, by_distance.size()); ++i)
    text += cat(i == 0 ? "; nearest are: " : " ", by_distance[i].second);
  return text;
}

}  // namespace qtn::graph
