// SPDX-License-Identifier: Apache-2.0
// Sequences that nodes make and take apart, and optionals: no value is either of them at run time. Items are values
// where the file says how many there are, or places of one tensor where they have one shape, or packed.
#include <algorithm>
#include <limits>

#include "onnx/packed_sequences.hpp"

namespace qtn::onnx {
namespace {

constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t kMostItems = 1 << 12, kMostLength = std::int64_t{1} << 31;

/// A position that the file says, counted from the front.
std::optional<std::size_t> position(const Composing &c, std::size_t input, std::size_t count) {
  const std::optional<std::int64_t> given = c.number(c.in(input));
  if (!given) return std::nullopt;
  const auto size = static_cast<std::int64_t>(count);
  if (*given < -size || *given >= size) c.refuse("position ", *given, " is outside of a sequence of ", count);
  return static_cast<std::size_t>(*given < 0 ? *given + size : *given);
}

std::string part(Composing &c, const Sequence &s, std::int64_t number, std::string output) {
  const std::vector<std::int64_t> axis{s.axis};
  if (!s.keeps_axis) return c.one("Gather", {s.whole, c.make_int(number)}, with("axis", s.axis), std::move(output));
  const std::int64_t end = number == -1 ? kEnd : (number + 1) * s.length;
  return c.one("Slice", {s.whole, c.make_ints({number * s.length}), c.make_ints({end}), c.make_ints(axis)}, {},
               std::move(output));
}

}  // namespace

std::optional<Names> items_of(Composing &c, const Sequence &s) {
  if (s.whole.empty()) return s.items;
  if (!s.lengths.empty()) return std::nullopt;
  const std::optional<Shape> shape = c.shape(s.whole);
  const std::int64_t rank = shape ? static_cast<std::int64_t>(shape->size()) : 0;
  if (s.axis < -rank || s.axis >= rank) return std::nullopt;
  const std::int64_t dim = (*shape)[static_cast<std::size_t>(s.axis < 0 ? s.axis + rank : s.axis)];
  if (dim < 0 || dim / s.length >= kMostItems) return std::nullopt;
  Names items;
  for (std::int64_t i = 0; i * s.length < dim; ++i) items.push_back(part(c, s, i, ""));
  return items;
}

namespace {

/// The same as places of axis 0 of one tensor, where all items have one shape.
std::optional<Sequence> stacked(Composing &c, const Sequence &s) {
  if (!s.whole.empty()) return s.axis == 0 && !s.keeps_axis ? std::optional(s) : std::nullopt;
  std::optional<Shape> shape;
  for (const std::string &item : s.items) {
    const std::optional<Shape> of = c.shape(item);
    if (!of || std::ranges::any_of(*of, [](std::int64_t dim) { return dim < 0; }) || (shape && !(*of == *shape)))
      return std::nullopt;
    shape = of;
  }
  if (!shape) return std::nullopt;
  Names parts;
  for (const std::string &item : s.items) parts.push_back(c.one("Unsqueeze", {item, c.make_ints({0})}));
  Sequence made{{}, c.one("Concat", parts, with("axis", std::int64_t{0})), 0, 1, false, {}, shape};
  return made;
}

bool insert_at_run_time(Composing &c, const Sequence &s) {
  const std::optional<Shape> item = c.shape(c.in(1));
  std::optional<Sequence> all = stacked(c, s);
  if (!all || !item || !all->shape || !(*item == *all->shape)) return false;
  all->whole = c.formula("Slice a [0] b [0];Unsqueeze c [0];Slice a b [end] [0];Concat A B C axis=0",
                         {all->whole, run_time_position(c, c.in(2)), c.in(1)});
  return c.keep(std::move(*all)), true;
}

bool erase_at_run_time(Composing &c, const Sequence &s) {
  std::optional<Sequence> all = stacked(c, s);
  if (!all) return false;
  // Position D is counted from the front, and not outside.
  all->whole = c.formula(
      "Shape a;Gather A 0;Range 0 B 1;Gather C b;Add D [1];Slice a [0] D [0];Slice a E [end] [0];Concat F G axis=0",
      {all->whole, run_time_position(c, c.in(1))});
  return c.keep(std::move(*all)), true;
}

/// An item among parts of lengths that are known at run time.
std::string measured_part(Composing &c, const Sequence &s, std::size_t input) {
  return c.formula("CumSum a 0;Gather A b;Gather a b;Sub B C;Slice c D B d",
                   {s.lengths, run_time_position(c, c.in(input)), s.whole, c.make_ints({s.axis})}, c.out(0));
}

/// The lengths of parts which are all as long as a run says, except the last one. D: no longer than all together.
std::string even_lengths(Composing &c, std::int64_t axis) {
  return c.formula(
      "Shape a;Gather A b;Max B [1];Min C c;Div B D;Expand D E;Mod B D;Concat F G axis=0;Add B D;Sub I [1];Div J D;"
      "Slice H [0] K [0]",
      {c.in(0), c.make_ints({axis}), run_time_position(c, c.in(1))});
}

bool split_to_sequence(Composing &c) {
  const Attrs attrs = c.attrs();
  if (c.in(0).empty()) fail(QTN_EFORMAT, "input 0 is absent");
  Sequence s{{}, c.in(0), attrs.get_int("axis", 0), 1, true};
  if (c.in(1).empty()) {
    s.keeps_axis = attrs.get_int("keepdims", 1) != 0;
    return c.keep(std::move(s)), true;
  }
  const std::optional<Tensor> split = c.constant(c.in(1));
  const std::optional<Shape> shape = c.shape(c.in(1));
  if (split ? split->rank() > 1 : shape && shape->size() > 1) return false;
  if (!split) {
    const bool is_list = shape ? shape->size() == 1 : c.is_joined(c.in(1));
    s.lengths = is_list ? c.one("Cast", {c.in(1)}, with("to", std::int64_t{QTN_INT64})) : even_lengths(c, s.axis);
    return c.keep(std::move(s)), true;
  }
  const std::vector<std::int64_t> lengths = int_values(*split, "split");
  if (std::ranges::any_of(lengths, [](std::int64_t length) { return length < 0; }))
    c.refuse("split has negative lengths");
  if (split->rank() == 0) {
    s.length = lengths[0];
    if (s.length < 1 || s.length > kMostLength) c.refuse("split is ", s.length);
    return c.keep(std::move(s)), true;
  }
  if (lengths.empty()) return false;
  return c.keep({c.add("Split", {c.in(0), c.make_ints(lengths)}, with("axis", s.axis), Names(lengths.size()))}), true;
}

bool sequence_construct(Composing &c) { return c.keep({c.node().inputs}), true; }

bool sequence_empty(Composing &c) {
  Sequence s;
  s.type = c.attrs().get_int("dtype", QTN_FLOAT32);
  return c.keep(std::move(s)), true;
}

bool sequence_insert(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  if (!s) return false;
  const std::optional<std::int64_t> given = c.number(c.in(2));
  const bool only = s->whole.empty() && s->items.empty();  // which has one place
  if (!c.in(2).empty() && !given && !only) return !is_packed(*s) && insert_at_run_time(c, *s);
  std::optional<Names> items = is_packed(*s) ? std::nullopt : items_of(c, *s);
  if (!items) {
    const std::optional<Sequence> all = packed(c, *s);
    return all && (c.keep(packed_with(c, *all, c.in(1), given)), true);
  }
  const auto size = static_cast<std::int64_t>(items->size());
  std::int64_t at = size;
  if (given) {
    at = *given;
    if (at < -size || at > size) c.refuse("position ", at, " is outside of a sequence of ", size);
  }
  items->insert(items->begin() + (at < 0 ? at + size : at), c.in(1));
  return c.keep({std::move(*items)}), true;
}

bool erase_packed(Composing &c, const Sequence &s) {
  const std::string position = c.in(1).empty() ? c.make_ints({-1}) : run_time_position(c, c.in(1));
  return c.keep(packed_without(c, s, position)), true;
}

bool sequence_erase(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  if (!s) return false;
  if (is_packed(*s)) return erase_packed(c, *s);
  if (!c.in(1).empty() && !c.number(c.in(1))) return erase_at_run_time(c, *s);
  std::optional<Names> items = items_of(c, *s);
  if (!items || items->empty()) return false;
  const auto at = c.in(1).empty() ? std::optional(items->size() - 1) : position(c, 1, items->size());
  if (!at) return false;
  items->erase(items->begin() + static_cast<std::ptrdiff_t>(*at));
  return c.keep({std::move(*items)}), true;
}

/// The item at a position of a run, whatever the shapes of items.
bool packed_at(Composing &c, const Sequence &s) {
  const std::optional<Sequence> all = packed(c, s);
  return all && (packed_item(c, *all, run_time_position(c, c.in(1)), c.out(0)), true);
}

bool sequence_at(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  if (!s) return false;
  if (is_packed(*s)) return packed_at(c, *s);
  const std::optional<std::int64_t> given = c.number(c.in(1));
  if (s->whole.empty()) {
    if (const auto at = position(c, 1, s->items.size())) return c.one("Identity", {s->items[*at]}, {}, c.out(0)), true;
    const std::optional<Sequence> all = stacked(c, *s);
    if (!all) return packed_at(c, *s);
    return c.one("Gather", {all->whole, c.in(1)}, with("axis", std::int64_t{0}), c.out(0)), true;
  }
  if (!s->lengths.empty()) return measured_part(c, *s, 1), true;
  if (!given) {
    // Parts of one place each may be chosen at run time.
    if (s->length != 1) return packed_at(c, *s);
    const std::string part = c.one("Gather", {s->whole, c.in(1)}, with("axis", s->axis), s->keeps_axis ? "" : c.out(0));
    if (s->keeps_axis) c.one("Unsqueeze", {part, c.make_ints({s->axis})}, {}, c.out(0));
    return true;
  }
  if (*given < -kMostLength || *given > kMostLength) c.refuse("position ", *given, " is outside of every sequence");
  if (*given < 0 && s->length != 1) return packed_at(c, *s);
  return part(c, *s, *given, c.out(0)), true;
}

bool sequence_length(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  if (!s) return false;
  if (s->whole.empty()) return c.make_int(static_cast<std::int64_t>(s->items.size()), c.out(0)), true;
  if (!s->lengths.empty()) return c.one("Size", {s->lengths}, {}, c.out(0)), true;
  const std::string dim = c.formula("Shape a;Gather A b", {is_packed(*s) ? s->table : s->whole, c.make_int(s->axis)},
                                    s->length == 1 ? c.out(0) : "");
  if (s->length != 1) c.formula("Add a b;Div A c", {dim, c.make_int(s->length - 1), c.make_int(s->length)}, c.out(0));
  return true;
}

/// The places of the first axis of a tensor as parts of another axis, one behind the other.
void join_places(Composing &c, const std::string &whole, std::int64_t axis) {
  const std::int64_t at = axis < 0 ? axis - 1 : axis, behind = axis == -1 ? kEnd : axis < 0 ? axis + 1 : axis + 2;
  const std::string moved = at == 0 ? whole : move_first_axis(c, whole, at, "");
  c.formula("Shape a;Slice A [0] b [0];Slice A c [end] [0];Concat B [-1] C axis=0;Reshape a D",
            {moved, c.make_ints({at}), c.make_ints({behind})}, c.out(0));
}

bool concat_from_sequence(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  const Attrs attrs = c.attrs();
  if (!s || !attrs.has("axis")) return false;
  const std::int64_t axis = attrs.get_int("axis", 0);
  constexpr auto kMost = static_cast<std::int64_t>(kMaxRank);
  if (axis < -kMost || axis > kMost) c.refuse("axis ", axis, " is outside of every tensor");
  const bool adds_axis = attrs.get_int("new_axis", 0) != 0;
  if (is_packed(*s)) return join_packed(c, *s, axis, adds_axis), true;
  if (!s->whole.empty() && s->axis == axis && s->keeps_axis != adds_axis)
    return c.one("Identity", {s->whole}, {}, c.out(0)), true;
  std::optional<Names> items = items_of(c, *s);
  if (!items && s->axis == 0 && !s->keeps_axis) {
    if (adds_axis)
      move_first_axis(c, s->whole, axis, c.out(0));
    else
      join_places(c, s->whole, axis);
    return true;
  }
  if (!items || items->empty()) return false;
  if (adds_axis)
    for (std::string &item : *items) item = c.one("Unsqueeze", {item, c.make_ints({axis})});
  return c.one("Concat", *items, with("axis", axis), c.out(0)), true;
}

/// The same sequence under another name.
bool rename_sequence(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  return s && (c.keep(*s), true);
}

bool rename(Composing &c) {
  if (rename_sequence(c)) return true;
  const std::optional<bool> holds = c.option(c.in(0));
  if (holds) c.scope().options[c.out(0)] = *holds;
  if (holds && !*holds) return false;
  return c.one("Identity", {c.in(0)}, {}, c.out(0)), true;
}

bool optional(Composing &c) {
  c.scope().options[c.out(0)] = !c.in(0).empty();
  return c.in(0).empty() || rename(c);
}

bool has_element(Composing &c) {
  const bool holds = !c.in(0).empty() && c.option(c.in(0)).value_or(true);
  return c.make_bool(holds, c.out(0)), true;
}

}  // namespace

const std::vector<ComposedRule> kSequenceRules{
    {"", "SplitToSequence", split_to_sequence}, {"", "SequenceConstruct", sequence_construct},
    {"", "SequenceEmpty", sequence_empty},      {"", "SequenceInsert", sequence_insert},
    {"", "SequenceErase", sequence_erase},      {"", "SequenceAt", sequence_at},
    {"", "SequenceLength", sequence_length},    {"", "ConcatFromSequence", concat_from_sequence},
    {"", "Identity", rename_sequence},          {"", "Optional", optional},
    {"", "OptionalGetElement", rename},         {"", "OptionalHasElement", has_element}};

}  // namespace qtn::onnx
