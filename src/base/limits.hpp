// SPDX-License-Identifier: Apache-2.0
// What models may take of this process. Budgets bound what a file gets for what it pays; limits bound it in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qtn {

enum class Limit : std::size_t { load_bytes, plan_bytes, run_bytes, tensor_elements, nodes, loop_iterations };

struct LimitInfo {
  const char *name;
  const char *unit;
  std::int64_t initial;  ///< 0: in proportion to the model
};
std::span<const LimitInfo> limit_infos();  ///< in the order of Limit

std::int64_t limit(Limit which);
void set_limit(Limit which, std::int64_t value);  ///< 0: its initial value

/// Throws QTN_ENOMEM naming the limit, its value and `amount` where that is over it.
[[noreturn]] void fail_over(Limit which, std::size_t amount);
inline void check_limit(Limit which, std::size_t amount) {
  if (amount > static_cast<std::size_t>(limit(which))) fail_over(which, amount);
}

/// Memory of elements that this thread holds for a piece of work, from here to the end of the scope. Scopes within it
/// have a limit of their own.
class Allowance {
 public:
  /// `held`: bytes that the work already has.
  explicit Allowance(Limit which, std::size_t held = 0);
  /// For a limit that is in proportion to what the work is for, and is `most` then.
  Allowance(Limit which, std::size_t held, std::size_t most);
  ~Allowance();
  Allowance(const Allowance &) = delete;
  Allowance &operator=(const Allowance &) = delete;

  /// Counts bytes for the innermost scope of this thread. Returns what give_back() wants to know of it.
  static std::uint64_t take(std::size_t bytes);
  /// Does nothing where that scope is no longer the innermost one.
  static void give_back(std::uint64_t scope, std::size_t bytes) noexcept;

 private:
  void add(std::size_t bytes);

  Limit which_;
  std::size_t most_, held_ = 0;
  std::uint64_t scope_;
  Allowance *outer_;
};

}  // namespace qtn
