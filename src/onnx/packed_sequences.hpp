// SPDX-License-Identifier: Apache-2.0
// Sequences of which only a run knows how many items there are and of which shapes, as two tensors: `whole` has the
// elements of all items, one item behind the other, and `table` a row for each item, which holds the number of its
// elements, its rank, its dimensions, and zeros.
#pragma once

#include "onnx/composing.hpp"

namespace qtn::onnx {

inline bool is_packed(const Sequence &s) { return !s.table.empty(); }

Sequence packed_as(std::string whole, std::string table);

/// Its tensors as further inputs or outputs of a graph.
void push_packed(std::vector<ValueInfo> &infos, const Sequence &s);

/// The items of a sequence that is not packed, if there are as many as the file says.
std::optional<Names> items_of(Composing &c, const Sequence &s);

/// A position that is known at run time only, as a tensor of one number.
std::string run_time_position(Composing &c, const std::string &position);

/// The same in this form; nothing where the number or the lengths of parts depend on the run.
std::optional<Sequence> packed(Composing &c, const Sequence &s);

// The following take packed sequences; positions are tensors of one number and may count from the end.

std::string packed_item(Composing &c, const Sequence &s, const std::string &position, const std::string &output);
Sequence packed_with(Composing &c, const Sequence &s, const std::string &item, std::optional<std::int64_t> position);
Sequence packed_without(Composing &c, const Sequence &s, const std::string &position);
/// Side by side along an axis that they have, or stacked along a new one.
void join_packed(Composing &c, const Sequence &s, std::int64_t axis, bool adds_axis);

}  // namespace qtn::onnx
