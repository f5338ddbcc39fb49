// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/stack_memory.hpp"
#include "ops/common/grouped_queries.hpp"
#include "runtime/steps/heads.hpp"

namespace qtn::runtime {
namespace {

class GroupedHeadsStep final : public Step {
 public:
  GroupedHeadsStep(const graph::Node &graph_node, std::vector<SlotId> inputs, const GroupedHeads &to)
      : attrs_(graph_node.attrs), inputs_(std::move(inputs)), to_(to) {
    op = "Caches";
    kernel = "heads";
    std::ranges::copy_if(inputs_, std::back_inserter(reads), [](SlotId s) { return s != kNoSlot; });
    writes = {to.queries, to.keys, to.values, to.ends};
    for (const SlotId cache : {to.present_keys, to.present_values})
      if (std::ranges::find(writes, cache) == writes.end()) writes.push_back(cache);
  }

  void run(const Context &c) const override {
    StackMemory memory;
    auto operands = memory.list<const Tensor *>(inputs_.size());
    std::ranges::transform(inputs_, operands.begin(), [&](SlotId s) { return s == kNoSlot ? nullptr : &c.tensor(s); });
    ops::group_queries({attrs_, operands, 3},
                       {c.tensor(to_.queries), c.tensor(to_.keys), c.tensor(to_.values), c.tensor(to_.ends),
                        c.tensor(to_.present_keys), c.tensor(to_.present_values)});
  }

 private:
  Attrs attrs_;
  std::vector<SlotId> inputs_;
  GroupedHeads to_;
};

}  // namespace

StepPtr make_grouped_heads(const graph::Node &node, std::vector<SlotId> inputs, const GroupedHeads &to) {
  return std::make_unique<GroupedHeadsStep>(node, std::move(inputs), to);
}

}  // namespace qtn::runtime
