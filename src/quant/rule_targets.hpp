// SPDX-License-Identifier: Apache-2.0
// Rules of a configuration that name one node or tensor must find it: a misspelled name would change nothing.
#pragma once

#include <span>
#include <string_view>

#include "quant/config.hpp"

namespace qtn::quant {

/// Throws QTN_EINVAL where a rule names a node that `g`, made of `model` by passes, does not have: says what that node
/// became part of, or which names come nearest.
void require_nodes(const Config &config, const graph::Graph &model, const graph::Graph &g);

/// The same for tensors, of which `quantized` are the names: throws where a rule is about another, and says why that
/// does not become integers. A rule that only says that a tensor need not is for any activation.
void require_tensors(const Config &config, const graph::Graph &model, const graph::Graph &g,
                     std::span<const std::string_view> quantized);

/// Throws QTN_EINVAL where a rule gives grids to what a named node makes for the model's outputs, and it makes none.
void require_outputs(const Config &config, const graph::Graph &g);

}  // namespace qtn::quant
