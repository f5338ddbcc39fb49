// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/weight_parts.hpp"

#include <algorithm>
#include <utility>

namespace qtn::graph {
namespace {

/// One of the int8 numbers that add up to a value; how many there are follows from its distance from what fits.
std::int64_t part_of(std::int64_t value, std::int64_t part) {
  return value > 0 ? std::clamp<std::int64_t>(value - 127 * part, 0, 127)
                   : std::clamp<std::int64_t>(value + 128 * part, -128, 0);
}

std::int64_t parts_of(std::int64_t value) {
  std::int64_t parts = 1;
  while (part_of(value, parts) != 0) ++parts;
  return parts;
}

}  // namespace

Centered::Centered(const Tensor &w, std::size_t out, const std::vector<std::int64_t> &zeros)
    : values(static_cast<std::size_t>(w.count())), shape(w.shape()), sum_axis(1 - out) {
  const Tensor plain = to_plain(w);
  const auto channels = static_cast<std::size_t>(w.dim(out));
  const auto inner = static_cast<std::size_t>(element_count(shape, out + 1, shape.size()));
  const bool is_unsigned = plain.dtype() == QTN_UINT8;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t q = is_unsigned ? plain.as<const std::uint8_t>()[i] : plain.as<const std::int8_t>()[i];
    values[i] = static_cast<std::int16_t>(q - zeros[zeros.size() == 1 ? 0 : i / inner % channels]);
  }
}

Readings readings_of(const Centered &w) {
  const auto inner = static_cast<std::size_t>(element_count(w.shape, w.sum_axis + 1, w.shape.size()));
  std::vector<std::int64_t> parts(static_cast<std::size_t>(w.shape[w.sum_axis]), 1);
  for (std::size_t i = 0; i < w.values.size(); ++i) {
    std::int64_t &most = parts[i / inner % parts.size()];
    most = std::max(most, parts_of(w.values[i]));
  }
  Readings found;
  for (std::size_t c = 0; c < parts.size(); ++c)
    for (std::int64_t part = 0; part < parts[c]; ++part) found.insert({part, static_cast<std::int64_t>(c)});
  return found;
}

Readings all_of(const Readings &some) {
  Readings all;
  const std::int64_t parts = some.empty() ? 1 : some.rbegin()->part + 1;
  for (std::int64_t part = 0; part < parts; ++part)
    for (const Reading &r : some)
      if (r.part == 0) all.insert({part, r.channel});
  return all;
}

Tensor stacked(const Centered &w, std::size_t axis, const std::vector<Reading> &rows, QuantizerPtr quantizer) {
  Shape shape = w.shape;
  const std::int64_t depth = shape[axis], outer = element_count(shape, 0, axis);
  const auto inner = static_cast<std::size_t>(element_count(shape, axis + 1, shape.size()));
  shape[axis] = static_cast<std::int64_t>(rows.size());
  const Tensor result(QTN_INT8, shape, std::move(quantizer));
  auto *to = result.as<std::int8_t>();
  for (std::int64_t o = 0; o < outer; ++o)
    for (const auto &[part, channel] : rows) {
      const std::int16_t *from = w.values.data() + static_cast<std::size_t>(o * depth + channel) * inner;
      to = std::transform(from, from + inner, to,
                          [part = part](std::int16_t v) { return static_cast<std::int8_t>(part_of(v, part)); });
    }
  return result;
}

}  // namespace qtn::graph
