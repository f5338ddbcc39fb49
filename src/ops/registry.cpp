// SPDX-License-Identifier: Apache-2.0
// Operators by name.
#include <algorithm>

#include "ops/op.hpp"

namespace qtn::ops {

#define QTN_OP(name)
#define QTN_RETIRED_OP(name) void upgrade_##name(OldNode &node);
#include "ops/ops.inc"
#undef QTN_OP

namespace {

constexpr const OpDef *kOps[] = {
#define QTN_OP(name) &k##name,
#include "ops/ops.inc"
#undef QTN_OP
};

constexpr std::string_view kNames[] = {
#define QTN_OP(name) #name,
#include "ops/ops.inc"
#undef QTN_OP
};
static_assert(std::ranges::is_sorted(kNames), "find_op() looks for names as they are sorted");

struct Retired {
  std::string_view name;
  void (*upgrade)(OldNode &node);
};

constexpr Retired kRetired[] = {
#define QTN_OP(name)
#define QTN_RETIRED_OP(name) {#name, upgrade_##name},
#include "ops/ops.inc"
#undef QTN_OP
};

}  // namespace

std::span<const OpDef *const> all_ops() { return kOps; }

const OpDef *find_op(std::string_view name) {
  const auto at = std::ranges::lower_bound(kOps, name, {}, [](const OpDef *op) { return std::string_view(op->name); });
  return at == std::end(kOps) || (*at)->name != name ? nullptr : *at;
}

const OpDef *find_op(std::string_view domain, std::string_view name) {
  const OpDef *op = find_op(name);
  return op && op->domain == domain ? op : nullptr;
}

bool is_retired(std::string_view name) {
  return std::ranges::find(kRetired, name, &Retired::name) != std::end(kRetired);
}

void upgrade_node(OldNode &node) {
  // No result depends on these, which say where memory may be used again, that shapes may differ, and that outputs are
  // wanted, which the outputs themselves say.
  if (node.opset < 7)
    for (const char *name : {"consumed_inputs", "broadcast", "is_test", "output_sequence"}) node.attrs.erase(name);
  if (const OpDef *op = find_op(node.op)) {
    if (op->upgrade) op->upgrade(node);
    return;
  }
  for (const Retired &retired : kRetired)
    if (retired.name == node.op) return retired.upgrade(node);
}

bool moves(const OpDef &op, const Attrs &attrs) { return op.moves && op.moves(attrs); }

}  // namespace qtn::ops
