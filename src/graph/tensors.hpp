// SPDX-License-Identifier: Apache-2.0
// The constants of a model by name, as its file has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::graph {

/// Constants that nodes or outputs read, in the order of their ids.
std::vector<ValueId> used_constants(const Graph &g);

/// The name without the ending that passes give to what they make of a constant ("_quantized", "_equalized_1" ...);
/// "" where it has none.
std::string_view without_suffix(std::string_view name);

/// The constant that this one was made of, where its name does not say it; else its name.
std::string original_name(const Value &constant);

/// By its own name, or by that of the initializer that it comes from where only one does. Throws QTN_EINVAL where none
/// or several do, with their names; `who` begins the message.
ValueId find_constant(const Graph &g, const std::string &who, const std::string &name);

/// A copy: float32, plain, or integers with their quantizer, which the weights of dynamic products get from the
/// constants beside them.
Tensor constant_tensor(const Graph &g, ValueId v);

/// In place of a float32 constant, or of integers with a quantizer. Throws QTN_EDTYPE and QTN_ESHAPE where `t` is not
/// of the same kind, QTN_EUNSUPPORTED where the constant is neither or shapes would change, and leaves the graph as it
/// was.
void set_constant_tensor(Graph &g, const std::string &who, const std::string &name, const Tensor &t);

}  // namespace qtn::graph
