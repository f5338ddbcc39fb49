// SPDX-License-Identifier: Apache-2.0
// The kinds of nodes that have steps of their own, a file for each. A function lowers the node under way and returns
// true, or does nothing and returns false: what it cannot take runs by the operator's definition.
#pragma once

#include "graph/tables.hpp"
#include "runtime/lower/attention_formula.hpp"
#include "runtime/lower/lowering.hpp"

namespace qtn::runtime {

// Integers in and out, or floats out. Called for nodes of that graph::IntegerForm.
bool lower_convolution(Lowering &l);
bool lower_product(Lowering &l);
bool lower_dynamic_product(Lowering &l);
bool lower_arithmetic(Lowering &l);
bool lower_pool(Lowering &l);
bool lower_table(Lowering &l);
bool lower_movement(Lowering &l);
bool lower_edge(Lowering &l);

/// Two activations in 8 bits; called for any node.
bool lower_matmul(Lowering &l);

// Called for nodes that compute something in any type.
bool lower_embedding(Lowering &l);
bool lower_scatter(Lowering &l);
bool lower_real_view(Lowering &l);
bool lower_recurrent(Lowering &l);
bool lower_heads(Lowering &l);

// Called for nodes whose first input and output are floats.
bool lower_real_convolution(Lowering &l);
bool lower_computed_product(Lowering &l);
bool lower_real_transposed(Lowering &l);
bool lower_real_product(Lowering &l);
bool lower_blocks(Lowering &l);
bool lower_real_matmul(Lowering &l);
bool lower_real_pool(Lowering &l);
bool lower_real_normalization(Lowering &l);
bool lower_real_add(Lowering &l);
bool lower_real_bias(Lowering &l);
bool lower_real_activation(Lowering &l);
bool lower_real_concat(Lowering &l);
bool lower_on_images(Lowering &l);
bool lower_grid_on_images(Lowering &l);
bool lower_truths_on_images(Lowering &l);
bool lower_resize_on_images(Lowering &l);
bool lower_moved_images(Lowering &l);

/// All nodes of a table, of which the node under way is the last.
void lower_table(Lowering &l, const graph::Table &table);

/// All of a formula, of which the node under way is the last product.
void lower_attention(Lowering &l, const AttentionFormula &formula);

}  // namespace qtn::runtime
