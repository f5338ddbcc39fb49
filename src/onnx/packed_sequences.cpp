// SPDX-License-Identifier: Apache-2.0
#include "onnx/packed_sequences.hpp"

namespace qtn::onnx {
namespace {

constexpr std::int64_t kColumns = 10;
static_assert(kColumns == 2 + kMaxRank);  // as texts below say

Sequence joined(Composing &c, const std::vector<Sequence> &parts) {
  Names wholes, tables;
  for (const Sequence &part : parts) {
    wholes.push_back(part.whole);
    tables.push_back(part.table);
  }
  const Attrs first = with("axis", std::int64_t{0});
  return packed_as(c.one("Concat", wholes, first), c.one("Concat", tables, first));
}

Sequence of_item(Composing &c, const std::string &item) {
  return packed_as(
      c.formula("Reshape a [-1]", {item}),
      c.formula("Shape a;Size a;Reshape B [1];Shape A;Concat C D A [0,0,0,0,0,0,0,0] axis=0;Slice E [0] [10] [0];"
                "Unsqueeze F [0]",
                {item}));
}

/// The places of a tensor along its first axis.
Sequence of_places(Composing &c, const std::string &whole) {
  return packed_as(
      c.formula("Reshape a [-1]", {whole}),
      c.formula("Shape a;Slice A [0] [1] [0];Slice A [1] [end] [0];ReduceProd C;Shape C;"
                "Concat D E C [0,0,0,0,0,0,0,0] axis=0;Slice F [0] [10] [0];Unsqueeze G [0];Concat B [1] axis=0;"
                "Expand H I",
                {whole}));
}

Sequence of_nothing(Composing &c, std::int64_t type) {
  const std::string none = c.formula("ConstantOfShape [0]", {});
  return packed_as(c.one("Cast", {none}, with("to", type)), c.formula("ConstantOfShape [0,10];Cast A to=7", {}));
}

/// A position counted from the front. Throws at run time where there are fewer items, not counting `more`.
std::string checked(Composing &c, const Sequence &s, const std::string &position, std::int64_t more = 0) {
  return c.formula("Shape a;Gather A 0;Add B b;Range 0 C 1;Gather D c", {s.table, c.make_int(more), position});
}

/// Where an item begins among all elements.
std::string begin_of(Composing &c, const Sequence &s, const std::string &at) {
  return c.formula("Slice a [0] b [0];Gather A 0 axis=1;ReduceSum B", {s.table, at});
}

/// An item that is there.
std::string item_at(Composing &c, const Sequence &s, const std::string &at, const std::string &output) {
  return c.formula(
      "Gather a b;Squeeze A [0];Slice B [0] [1] [0];Slice B [1] [2] [0];Add D [2];Slice B [2] E [0];Add c C;"
      "Slice d c G [0];Reshape H F allowzero=1",
      {s.table, at, begin_of(c, s, at), s.whole}, output);
}

/// The items one behind the other along an axis: a loop over all of them except the first.
void join_along(Composing &c, const Sequence &s, std::int64_t axis) {
  GraphProto body;
  Composing inner(c, body.nodes);
  const std::string number = c.new_name("number"), goes_on = c.new_name("goes_on"), before = c.new_name("joined");
  body.inputs.push_back(tensor_named(number, QTN_INT64));
  body.inputs.push_back(tensor_named(goes_on, QTN_BOOL));
  body.inputs.push_back(tensor_named(before));
  const std::string item = item_at(inner, s, inner.formula("Add a [1]", {number}), "");
  body.outputs.push_back(tensor_named(inner.formula("Identity a", {goes_on}), QTN_BOOL));
  body.outputs.push_back(tensor_named(inner.one("Concat", {before, item}, with("axis", axis))));
  const std::string others = c.formula("Shape a;Gather A 0;Sub B 1", {s.table});
  const std::string first = packed_item(c, s, c.make_ints({0}), "");
  c.visit(node_with_body("Loop", c.node().name, {others, "", first}, {c.out(0)},
                         std::make_shared<GraphProto>(std::move(body)), {}));
}

}  // namespace

Sequence packed_as(std::string whole, std::string table) {
  Sequence s;
  s.whole = std::move(whole);
  s.table = std::move(table);
  return s;
}

void pack_in(std::vector<ValueInfo> &infos, std::size_t at, const Sequence &s) {
  infos[at] = tensor_named(s.table, QTN_INT64);
  infos[at].shape = Shape{-1, kColumns};
  infos.insert(infos.begin() + static_cast<std::ptrdiff_t>(at), tensor_named(s.whole));
}

std::string run_time_position(Composing &c, const std::string &position) {
  return c.formula("Cast a to=7;Reshape A [1]", {position});
}

std::optional<Sequence> packed(Composing &c, const Sequence &s) {
  if (is_packed(s)) return s;
  const std::optional<Names> items = items_of(c, s);
  if (!items) return s.axis == 0 && !s.keeps_axis ? std::optional(of_places(c, s.whole)) : std::nullopt;
  if (items->empty()) return of_nothing(c, s.type);
  std::vector<Sequence> parts;
  for (const std::string &item : *items) parts.push_back(of_item(c, item));
  return joined(c, parts);
}

std::string packed_item(Composing &c, const Sequence &s, const std::string &position, const std::string &output) {
  return item_at(c, s, checked(c, s, position), output);
}

Sequence packed_with(Composing &c, const Sequence &s, const std::string &item, std::optional<std::int64_t> position) {
  const Sequence added = of_item(c, item);
  if (!position) return joined(c, {s, added});
  constexpr std::string_view kInsertion = "Slice a [0] b [0];Slice a b [end] [0];Concat A c B axis=0";
  const std::string at = checked(c, s, c.make_ints({*position}), *position >= 0);  // or behind the last one
  return packed_as(c.formula(kInsertion, {s.whole, begin_of(c, s, at), added.whole}),
                   c.formula(kInsertion, {s.table, at, added.table}));
}

Sequence packed_without(Composing &c, const Sequence &s, const std::string &position) {
  constexpr std::string_view kDeletion = "Slice a [0] b [0];Slice a c [end] [0];Concat A B axis=0";
  const std::string at = checked(c, s, position), next = c.formula("Add a [1]", {at});
  return packed_as(c.formula(kDeletion, {s.whole, begin_of(c, s, at), begin_of(c, s, next)}),
                   c.formula(kDeletion, {s.table, at, next}));
}

void join_packed(Composing &c, const Sequence &s, std::int64_t axis, bool adds_axis) {
  if (!adds_axis) return join_along(c, s, axis);
  // Items of several shapes have fewer elements than as many of the largest dimensions, which is an error.
  const std::string stack = c.formula(
      "ReduceMax a [0] keepdims=0;Slice A [1] [2] [0];Add B [2];Slice A [2] C [0];Shape a;Slice E [0] [1] [0];"
      "Concat F D axis=0;Reshape b G allowzero=1",
      {s.table, s.whole});
  move_first_axis(c, stack, axis, c.out(0));
}

}  // namespace qtn::onnx
