// SPDX-License-Identifier: Apache-2.0
// The plans of a session, one for each set of input shapes. Those of a few sets are kept in any case. Those of more are
// kept where shapes come again after their plan was dropped, as in a loop whose body meets other shapes in each iteration
// and in decoders, and as long as all of them take little memory. The least recently used goes first.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/plan.hpp"

namespace qtn::runtime {

/// Equal for inputs of equal types.
std::uint64_t key_of(std::span<const Tensor *const> inputs);

/// Whether inputs are of these types, and hold what `values` does, where that is not empty.
bool fits(std::span<const ops::TensorType> types, std::span<const Tensor> values,
          std::span<const Tensor *const> inputs);

/// Copies of the inputs that may say shapes; tensors without data for the others.
std::vector<Tensor> saying_values(std::span<const ops::TensorType> types, std::span<const Tensor *const> inputs);

struct PlanEntry {
  std::vector<ops::TensorType> inputs;
  std::vector<Tensor> values;  ///< of inputs that shapes follow from; empty where they follow from shapes alone
  Plan plan;
  std::size_t bytes = 0;                          ///< that the plan takes, about
  mutable std::atomic<std::int64_t> last_use{0};  ///< 0: not used yet
  mutable std::atomic<bool> dropped{false};       ///< no longer in the cache

  bool fits(std::span<const Tensor *const> given) const { return runtime::fits(inputs, values, given); }
};
using PlanEntryPtr = std::shared_ptr<const PlanEntry>;

/// What is known of a graph before it runs on inputs of some types.
struct Outlook {
  std::vector<ops::TensorType> inputs;
  std::vector<Tensor> values;  ///< of inputs that may say shapes; empty where types alone were looked at
  graph::PartlyInferred known;
};

/// Where a graph stands that is a part of another one.
struct Within {
  bool is_part = false;       ///< shapes of its inputs change from run to run
  std::size_t constants = 0;  ///< bytes of the whole, by which memory of its runs is measured
  std::size_t depth = 0;      ///< of runs within runs
};

class PlanCache {
 public:
  static constexpr std::size_t kFewPlans = 8;     ///< that are kept whatever they take
  static constexpr std::size_t kMostPlans = 256;  ///< a run that looks for its plan looks at all of them

  PlanCache(const graph::Graph &g, Isa isa, std::span<const graph::ValueId> watched = {}, const Within &within = {});

  /// The plan that fits these inputs, made now if need be. nullptr where shapes follow from data, and for a part whose
  /// plans have followed from too many values: then the outlooks are what is known by types, and by values where these
  /// were looked at.
  PlanEntryPtr plan_for(std::span<const Tensor *const> inputs, Outlook &by_types, Outlook &by_values);

  /// Makes the plan for inputs of these types, unless shapes follow from values of inputs.
  void plan_declared(const std::vector<ops::TensorType> &types);

  /// Bytes that a run on these inputs may hold at a time.
  std::size_t run_limit(std::span<const Tensor *const> inputs) const;

  /// Bytes of packed weights, which all plans share.
  std::size_t weights_bytes() const { return weights_.bytes(); }

 private:
  static constexpr std::size_t kMostValues = 4;

  struct Kept {
    std::uint64_t key;
    PlanEntryPtr entry;
  };

  /// Whether it is worth while to look at values: a part in a loop that counts meets new ones in every run.
  bool looks_at_values() const { return !within_.is_part || values_.load(std::memory_order_relaxed) <= kMostValues; }
  /// Finds out what is known, of inputs and values that the outlook has.
  void look(Outlook &outlook) const;
  PlanEntryPtr add(Outlook &outlook);
  std::size_t limit_with(std::size_t input_bytes) const;
  void drop_oldest();

  const graph::Graph &graph_;
  Isa isa_;
  Within within_;
  std::size_t constants_;      ///< bytes of the graph's
  std::size_t channel_bytes_;  ///< of numbers for each channel, which every plan has for itself
  Weights weights_;
  std::span<const graph::ValueId> watched_;
  std::atomic<std::size_t> values_{0};  ///< for which plans were to be made
  std::mutex mutex_;
  std::vector<Kept> kept_;
  std::vector<std::uint64_t> dropped_;  ///< keys of the plans that were dropped last
  std::size_t most_plans_ = kFewPlans;
  std::size_t kept_bytes_ = 0;
};

}  // namespace qtn::runtime
