// SPDX-License-Identifier: Apache-2.0
#include "graph/pipelines.hpp"

#include <initializer_list>
#include <span>

#include "graph/passes/passes.hpp"

namespace qtn::graph {
namespace {

using Pass = void (*)(Graph &);

void check_inference(Graph &g) { require_inference(g); }

constexpr Pass kSimplification[] = {fold_constants,    inline_constant_branches, capture_invariants,  check_inference,
                                    remove_identities, make_products_of_einsums, make_clips_of_bounds};
constexpr Pass kSums[] = {sum_integers_in_float, add_after_products};
constexpr Pass kLayout[] = {keep_channels_first, fold_scales_before_norms, bring_biases_to_products};
constexpr Pass kLoneNorms[] = {keep_channels_first, fold_scales_before_norms, fold_norms_of_columns};
constexpr Pass kNorms[] = {fold_batch_norms};
constexpr Pass kPrecededNorms[] = {fold_preceded_batch_norms};
constexpr Pass kFusion[] = {fuse_pads, fuse_biases, fuse_clamps, round_before_moves, stay_on_grids, center_weights};
constexpr Pass kDynamic[] = {fold_norms_of_columns, fold_batch_norms, normalize_products};
constexpr Pass kTraining[] = {restore_norms,  separate_clamps,         fold_constants, inline_constant_branches,
                              leave_training, make_products_of_einsums};
constexpr Pass kEqualization[] = {remove_identities, fold_preceded_batch_norms, fuse_pads, fuse_clamps};
constexpr Pass kProducts[] = {normalize_products};
constexpr Pass kFormulas[] = {fold_scales, name_formulas, name_normalizations, name_group_normalizations};

void run_all(Graph &g, std::initializer_list<std::span<const Pass>> rows) {
  for (const std::span<const Pass> passes : rows)
    for (const Pass pass : passes) pass(g);
}

}  // namespace

void run_passes(Graph &g, Pipeline pipeline) {
  switch (pipeline) {
    case Pipeline::simplification:
      return run_all(g, {kSimplification});
    case Pipeline::inference:
      return run_all(g, {kSimplification, kNorms, kFusion});
    case Pipeline::execution:
      return run_all(g, {kSimplification, kSums, kLayout, kPrecededNorms, kFusion, kFormulas});
    case Pipeline::lone_norms:
      return run_all(g, {kSimplification, kLoneNorms});
    case Pipeline::quantization:
      return run_all(g, {kSimplification, kLayout, kNorms, kFusion, kProducts});
    case Pipeline::training_grids:
      return run_all(g, {kSimplification, kNorms, kFusion, kProducts});
    case Pipeline::dynamic_quantization:
      return run_all(g, {kSimplification, kDynamic});
    case Pipeline::training:
      return run_all(g, {kTraining});
    case Pipeline::equalization:
      return run_all(g, {kEqualization});
  }
}

void join_under_grids(Graph &g, const NodeFilter &scales, const NodeFilter &formulas) {
  fold_scales(g, scales);
  name_formulas(g, formulas);
  name_normalizations(g, formulas);
}

}  // namespace qtn::graph
