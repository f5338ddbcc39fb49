// SPDX-License-Identifier: Apache-2.0
// Sequences that nodes make and take apart, and optionals: no value is either of them at run time. Places are those which
// the file says, or of any run where items have one shape.
#include <algorithm>
#include <limits>

#include "onnx/composing.hpp"

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

/// The items one by one, where there are as many as the file says.
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

/// A position that is known at run time only, as a tensor of one number.
std::string run_time_position(Composing &c, std::size_t input) {
  const std::string position = c.one("Cast", {c.in(input)}, with("to", std::int64_t{QTN_INT64}));
  return c.one("Reshape", {position, c.make_ints({1})});
}

std::string places(Composing &c, const std::string &whole, const std::string &begin, const std::string &end) {
  return c.one("Slice", {whole, begin, end, c.make_ints({0})});
}

bool insert_at_run_time(Composing &c, const Sequence &s) {
  const std::optional<Shape> item = c.shape(c.in(1));
  std::optional<Sequence> all = stacked(c, s);
  if (!all || !item || !all->shape || !(*item == *all->shape)) return false;
  const std::string at = run_time_position(c, 2), added = c.one("Unsqueeze", {c.in(1), c.make_ints({0})});
  const Names parts{places(c, all->whole, c.make_ints({0}), at), added, places(c, all->whole, at, c.make_ints({kEnd}))};
  all->whole = c.one("Concat", parts, with("axis", std::int64_t{0}));
  return c.keep(std::move(*all)), true;
}

bool erase_at_run_time(Composing &c, const Sequence &s) {
  std::optional<Sequence> all = stacked(c, s);
  if (!all) return false;
  const std::string count = c.one("Gather", {c.one("Shape", {all->whole}), c.make_int(0)});
  const std::string numbers = c.one("Range", {c.make_int(0), count, c.make_int(1)});
  const std::string at = c.one("Gather", {numbers, run_time_position(c, 1)});  // from the front, and not outside
  const Names parts{places(c, all->whole, c.make_ints({0}), at),
                    places(c, all->whole, c.one("Add", {at, c.make_ints({1})}), c.make_ints({kEnd}))};
  all->whole = c.one("Concat", parts, with("axis", std::int64_t{0}));
  return c.keep(std::move(*all)), true;
}

/// An item among parts of lengths that are known at run time.
std::string measured_part(Composing &c, const Sequence &s, std::size_t input) {
  const std::string at = run_time_position(c, input);
  const std::string ends = c.one("CumSum", {s.lengths, c.make_int(0)});
  const std::string end = c.one("Gather", {ends, at}), length = c.one("Gather", {s.lengths, at});
  return c.one("Slice", {s.whole, c.one("Sub", {end, length}), end, c.make_ints({s.axis})}, {}, c.out(0));
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
  if (const std::optional<Shape> shape = c.shape(c.in(1)); !split && shape && shape->size() == 1) {
    s.lengths = c.one("Cast", {c.in(1)}, with("to", std::int64_t{QTN_INT64}));
    return c.keep(std::move(s)), true;
  }
  if (!split || split->rank() > 1) return false;
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
bool sequence_empty(Composing &c) { return c.keep({{}}), true; }

bool sequence_insert(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  if (!s) return false;
  const std::optional<std::int64_t> given = c.number(c.in(2));
  const bool only = s->whole.empty() && s->items.empty();  // which has one place
  if (!c.in(2).empty() && !given && !only) return insert_at_run_time(c, *s);
  std::optional<Names> items = items_of(c, *s);
  if (!items) return false;
  const auto size = static_cast<std::int64_t>(items->size());
  std::int64_t at = size;
  if (given) {
    at = *given;
    if (at < -size || at > size) c.refuse("position ", at, " is outside of a sequence of ", size);
  }
  items->insert(items->begin() + (at < 0 ? at + size : at), c.in(1));
  return c.keep({std::move(*items)}), true;
}

bool sequence_erase(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  if (!s) return false;
  if (!c.in(1).empty() && !c.number(c.in(1))) return erase_at_run_time(c, *s);
  std::optional<Names> items = items_of(c, *s);
  if (!items || items->empty()) return false;
  const auto at = c.in(1).empty() ? std::optional(items->size() - 1) : position(c, 1, items->size());
  if (!at) return false;
  items->erase(items->begin() + static_cast<std::ptrdiff_t>(*at));
  return c.keep({std::move(*items)}), true;
}

bool sequence_at(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  if (!s) return false;
  const std::optional<std::int64_t> given = c.number(c.in(1));
  if (s->whole.empty()) {
    if (const auto at = position(c, 1, s->items.size())) return c.one("Identity", {s->items[*at]}, {}, c.out(0)), true;
    const std::optional<Sequence> all = stacked(c, *s);
    return all && (c.one("Gather", {all->whole, c.in(1)}, with("axis", std::int64_t{0}), c.out(0)), true);
  }
  if (!s->lengths.empty()) return measured_part(c, *s, 1), true;
  if (!given) {
    // Parts of one place each may be chosen at run time.
    if (s->length != 1) return false;
    const std::string part = c.one("Gather", {s->whole, c.in(1)}, with("axis", s->axis), s->keeps_axis ? "" : c.out(0));
    if (s->keeps_axis) c.one("Unsqueeze", {part, c.make_ints({s->axis})}, {}, c.out(0));
    return true;
  }
  if (*given < -kMostLength || *given > kMostLength) c.refuse("position ", *given, " is outside of every sequence");
  if (*given < 0 && s->length != 1) return false;
  return part(c, *s, *given, c.out(0)), true;
}

bool sequence_length(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  if (!s) return false;
  if (s->whole.empty()) return c.make_int(static_cast<std::int64_t>(s->items.size()), c.out(0)), true;
  if (!s->lengths.empty()) return c.one("Size", {s->lengths}, {}, c.out(0)), true;
  const std::string shape = c.one("Shape", {s->whole});
  const std::string dim = c.one("Gather", {shape, c.make_int(s->axis)}, {}, s->length == 1 ? c.out(0) : "");
  if (s->length == 1) return true;
  const std::string whole = c.one("Add", {dim, c.make_int(s->length - 1)});
  return c.one("Div", {whole, c.make_int(s->length)}, {}, c.out(0)), true;
}

/// The places of the first axis of a tensor as parts of another axis, one behind the other.
void join_places(Composing &c, const std::string &whole, std::int64_t axis) {
  const std::int64_t at = axis < 0 ? axis - 1 : axis, behind = axis == -1 ? kEnd : axis < 0 ? axis + 1 : axis + 2;
  const std::string moved = at == 0 ? whole : move_first_axis(c, whole, at, "");
  const std::string shape = c.one("Shape", {moved});
  const std::string joined = c.one("Concat",
                                   {places(c, shape, c.make_ints({0}), c.make_ints({at})), c.make_ints({-1}),
                                    places(c, shape, c.make_ints({behind}), c.make_ints({kEnd}))},
                                   with("axis", std::int64_t{0}));
  c.one("Reshape", {moved, joined}, {}, c.out(0));
}

bool concat_from_sequence(Composing &c) {
  const Sequence *s = c.sequence(c.in(0));
  const Attrs attrs = c.attrs();
  if (!s || !attrs.has("axis")) return false;
  const std::int64_t axis = attrs.get_int("axis", 0);
  constexpr auto kMost = static_cast<std::int64_t>(kMaxRank);
  if (axis < -kMost || axis > kMost) c.refuse("axis ", axis, " is outside of every tensor");
  const bool adds_axis = attrs.get_int("new_axis", 0) != 0;
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

/// The same value under another name.
bool rename(Composing &c) {
  if (const Sequence *s = c.sequence(c.in(0))) return c.keep(*s), true;
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

const std::vector<ComposedRule> kSequenceRules{{"", "SplitToSequence", split_to_sequence},
                                               {"", "SequenceConstruct", sequence_construct},
                                               {"", "SequenceEmpty", sequence_empty},
                                               {"", "SequenceInsert", sequence_insert},
                                               {"", "SequenceErase", sequence_erase},
                                               {"", "SequenceAt", sequence_at},
                                               {"", "SequenceLength", sequence_length},
                                               {"", "ConcatFromSequence", concat_from_sequence},
                                               {"", "Optional", optional},
                                               {"", "OptionalGetElement", rename},
                                               {"", "OptionalHasElement", has_element}};

}  // namespace qtn::onnx
