// SPDX-License-Identifier: Apache-2.0
#include "onnx/packed_sequences.hpp"

#include <limits>

namespace qtn::onnx {
namespace {

constexpr std::int64_t kColumns = 10, kEnd = std::numeric_limits<std::int64_t>::max();
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

/// Where the places of an axis lie among all rows, item by item: a table of as many lines as there are rows before each
/// place. `lengths` are those of the items along the axis, `sum` is their sum.
std::string places_of(Composing &c, const std::string &lengths, const std::string &lines, const std::string &sum) {
  // Place p of line l is row (lines - 1) * begin + p + l * length, where A has the beginnings of items, and J is the item
  // in which p lies.
  return c.formula(
      "CumSum a 0 exclusive=1;Add c [1];ConstantOfShape B;Cast C to=7;Mul a 0;Add E 1;ScatterElements D A F;"
      "Slice G [0] c [0];CumSum H 0;Sub I 1;Gather A J;Gather a J;Sub b [1];Mul K M;Squeeze c;Range 0 O 1;Add N P;"
      "Squeeze b;Range 0 R 1;Unsqueeze S [1];Mul T L;Add U Q",
      {lengths, lines, sum});
}

/// The items one behind the other along an axis. Those without elements may differ in other axes, as in a Concat.
void join_along(Composing &c, const Sequence &s, std::int64_t axis) {
  const std::string at = c.make_ints({axis}), behind = c.make_ints({axis == -1 ? kEnd : axis + 1});
  // The lines of items with elements, or of all where none has any. D is an error where there is no item.
  const std::string table = c.formula(
      "Slice a [0] [1] [1];Min A 1;ArgMax B axis=0;Gather B C;Equal B D;Reshape E [-1];Compress a F axis=0", {s.table});
  const std::string most = c.formula("ReduceMax a [0] keepdims=0", {table});
  const std::string end = c.formula("Slice a [1] [2] [0];Add A [2]", {most});
  constexpr std::string_view kLengths = "Slice a [2] b [1];Gather A c axis=1";
  const std::string number = c.make_int(axis),
                    sum = c.formula("ReduceSum a", {c.formula(kLengths, {s.table, end, number})});
  // Where there are several shapes, the largest dimensions have more elements, or the smallest ones fewer, which is an error.
  constexpr std::string_view kBefore = "Slice a [2] b [0];Slice A [0] c [0]",
                             kBehind = "Slice a [2] b [0];Slice A c [end] [0]";
  const std::string lines = c.formula("ReduceProd a", {c.formula(kBefore, {most, end, at})});
  std::string rows = c.formula("ReduceProd a;Mul b c;Concat B A axis=0;Reshape d C allowzero=1",
                               {c.formula(kBehind, {most, end, behind}), lines, sum, s.whole});
  // Along the first axis they are in order.
  if (axis != 0) rows = c.one("Gather", {rows, places_of(c, c.formula(kLengths, {table, end, number}), lines, sum)});
  const std::string least = c.formula("ReduceMin a [0] keepdims=0", {table});
  c.formula("Concat a b c axis=0;Reshape d A allowzero=1",
            {c.formula(kBefore, {least, end, at}), sum, c.formula(kBehind, {least, end, behind}), rows}, c.out(0));
}

}  // namespace

Sequence packed_as(std::string whole, std::string table) {
  Sequence s;
  s.whole = std::move(whole);
  s.table = std::move(table);
  return s;
}

void push_packed(std::vector<ValueInfo> &infos, const Sequence &s) {
  infos.push_back(tensor_named(s.whole));
  infos.push_back(tensor_named(s.table, QTN_INT64));
  infos.back().shape = Shape{-1, kColumns};
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
  // Items of several shapes have more elements than as many of the smallest dimensions, which is an error. Where an item
  // has fewer dimensions than another, 0 is the smallest one.
  const std::string stack = c.formula(
      "ReduceMax a [0] keepdims=0;Slice A [1] [2] [0];Add B [2];ReduceMin a [0] keepdims=0;Slice D [2] C [0];Shape a;"
      "Slice F [0] [1] [0];Concat G E axis=0;Reshape b H allowzero=1",
      {s.table, s.whole});
  move_first_axis(c, stack, axis, c.out(0));
}

}  // namespace qtn::onnx
