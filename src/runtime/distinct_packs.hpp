// SPDX-License-Identifier: Apache-2.0
// Packed weights of one session, each of which is there once.
#pragma once

#include <unordered_map>

#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// Nodes that have the same weights share what is packed from them: layers through which a network passes several
/// times, and steps of a recurrence that its exporter wrote out.
class DistinctPacks {
 public:
  /// What equals `made`, from here on or from before.
  PackedPtr add(PackedPtr made);

  std::size_t bytes() const;

 private:
  std::unordered_multimap<std::size_t, PackedPtr> by_digest_;
};

}  // namespace qtn::runtime
