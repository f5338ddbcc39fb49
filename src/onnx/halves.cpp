// SPDX-License-Identifier: Apache-2.0
#include "onnx/halves.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error.hpp"
#include "core/half.hpp"
#include "graph/tensors.hpp"
#include "graph/unique_names.hpp"

namespace qtn::onnx {
namespace {

using graph::ValueId;

/// Nullopt where an element has more bits than that.
template <class Encode, class Decode>
std::optional<Tensor> exactly(const Tensor &floats, qdtype dtype, const Encode &encode, const Decode &decode) {
  Tensor halves(dtype, floats.shape());
  const auto *from = floats.as<const float>();
  auto *to = halves.as<std::uint16_t>();
  for (std::int64_t i = 0; i < floats.count(); ++i) {
    to[i] = encode(from[i]);
    if (std::bit_cast<std::uint32_t>(decode(to[i])) != std::bit_cast<std::uint32_t>(from[i])) return std::nullopt;
  }
  return halves;
}

std::optional<Tensor> exactly(const Tensor &floats, qdtype dtype) {
  if (dtype == QTN_FLOAT16) return exactly(floats, dtype, encode_half, decode_half);
  return exactly(floats, dtype, encode_bfloat16, decode_bfloat16);
}

/// Only nodes that make it float32 read it, as where a file had that.
bool is_cast(const graph::Graph &g, const graph::Uses &uses, ValueId v) {
  return std::ranges::all_of(uses.consumers[static_cast<std::size_t>(v)], [&](std::int32_t n) {
    const graph::Node &node = g.nodes[static_cast<std::size_t>(n)];
    return node.op == &ops::kCast && node.attrs.get_int("to", 0) == QTN_FLOAT32;
  });
}

/// Where a Cast costs less than it saves.
bool is_worthwhile(const graph::Value &value) {
  constexpr std::size_t kLarge = 4096;
  return value.file_dtype && value.constant.dtype() == QTN_FLOAT32 && !value.quantizer &&
         value.constant.nbytes() >= kLarge;
}

/// The name goes to what the file has, and what is made of that is called after it, as it may be already.
ValueId add_halves(graph::Graph &g, graph::UniqueNames &names, ValueId floats, Tensor halves) {
  constexpr std::string_view kMade = "_float32";
  graph::Value value;
  std::string &made = g.value(floats).name;
  if (made.ends_with(kMade)) {
    value.name = names.make(made.substr(0, made.size() - kMade.size()));
  } else {
    value.name = made;
    made = names.make(cat(made, kMade));
  }
  value.dtype = halves.dtype();
  value.shape = halves.shape();
  value.constant = std::move(halves);
  return g.add_value(std::move(value));
}

}  // namespace

void store_in_halves(graph::Graph &g) {
  std::vector<graph::Node> casts;
  graph::UniqueNames names;
  for (const graph::Value &value : g.values) names.take(value.name);
  const graph::Uses uses(g);
  for (const ValueId v : graph::used_constants(g)) {
    if (!is_worthwhile(g.value(v)) || uses.is_output[static_cast<std::size_t>(v)]) continue;
    std::optional<Tensor> halves = exactly(g.value(v).constant.to_contiguous(), *g.value(v).file_dtype);
    if (!halves) continue;
    if (is_cast(g, uses, v)) {
      g.value(v).dtype = halves->dtype();
      g.value(v).constant = std::move(*halves);
      continue;
    }
    const ValueId in_file = add_halves(g, names, v, std::move(*halves));
    g.value(v).constant = {};
    graph::Node cast;
    cast.op = &ops::kCast;
    cast.attrs.set("to", std::int64_t{QTN_FLOAT32});
    cast.inputs = {in_file};
    cast.outputs = {v};
    cast.name = g.value(v).name + "_Cast";
    casts.push_back(std::move(cast));
  }
  g.names.forget();
  g.nodes.insert(g.nodes.begin(), std::make_move_iterator(casts.begin()), std::make_move_iterator(casts.end()));
}

}  // namespace qtn::onnx
