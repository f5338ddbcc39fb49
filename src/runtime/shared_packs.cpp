// SPDX-License-Identifier: Apache-2.0
#include "runtime/shared_packs.hpp"

#include <algorithm>

namespace qtn::runtime {
namespace {

thread_local SharedPacks *innermost = nullptr;

}  // namespace

SharedPacks::SharedPacks() : outer_(innermost) { innermost = this; }
SharedPacks::~SharedPacks() { innermost = outer_; }

PackedPtr SharedPacks::get(const RealWeights &w, const kernels::GemmRealKernel &kernel,
                           const std::function<PackedPtr()> &pack) {
  if (!innermost) return pack();
  std::vector<Entry> &entries = innermost->entries_;
  std::erase_if(entries, [](const Entry &entry) { return entry.is_stale(); });
  const Key key{w.weight.data(), w.bias.data(), &kernel, w.groups, w.out, w.k, w.taps, w.is_matrix};
  const auto found = std::ranges::find(entries, key, &Entry::key);
  if (found != entries.end()) return found->packed;
  return entries.emplace_back(Entry{key, w.weight.storage(), w.bias.storage(), pack()}).packed;
}

}  // namespace qtn::runtime
