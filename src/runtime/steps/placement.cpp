// SPDX-License-Identifier: Apache-2.0
// Pieces of memory that take the places of others.
#include <cstring>

#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

class PlacementStep final : public Step {
 public:
  PlacementStep(SlotId x, SlotId updates, SlotId y, std::vector<Placement> placements)
      : placements_(std::move(placements)) {
    kernel = "placement";
    reads = {x, updates};
    writes = {y};
  }

  std::size_t held_bytes() const override { return placements_.capacity() * sizeof(Placement); }

  void run(const Context &c) const override {
    const Tensor &x = c.tensor(reads[0]), &y = c.tensor(writes[0]);
    const auto *from = static_cast<const std::byte *>(c.tensor(reads[1]).data());
    auto *to = static_cast<std::byte *>(y.data());
    std::memcpy(to, x.data(), x.nbytes());
    for (const Placement &p : placements_) {
      std::memcpy(to + p.at, from, p.bytes);
      from += p.bytes;
    }
  }

 private:
  std::vector<Placement> placements_;
};

}  // namespace

StepPtr make_placement(SlotId x, SlotId updates, SlotId y, std::vector<Placement> placements) {
  return std::make_unique<PlacementStep>(x, updates, y, std::move(placements));
}

}  // namespace qtn::runtime
