// SPDX-License-Identifier: Apache-2.0
#include "base/limits.hpp"

#include <array>
#include <atomic>
#include <limits>

#include "base/error.hpp"

namespace qtn {
namespace {

constexpr std::int64_t kTera = std::int64_t{1} << 40;
constexpr std::array<LimitInfo, 6> kInfos{{{"load_bytes", "bytes", kTera},
                                           {"plan_bytes", "bytes", kTera},
                                           {"run_bytes", "bytes", 0},
                                           {"tensor_elements", "elements", kTera},
                                           {"nodes", "nodes or values", std::int64_t{1} << 22},
                                           {"loop_iterations", "iterations", 1000000}}};

constinit std::array<std::atomic<std::int64_t>, kInfos.size()> limits{
    kInfos[0].initial, kInfos[1].initial, kInfos[2].initial, kInfos[3].initial, kInfos[4].initial, kInfos[5].initial};

thread_local Allowance *innermost = nullptr;
constinit std::atomic<std::uint64_t> last_scope{0};

}  // namespace

std::span<const LimitInfo> limit_infos() { return kInfos; }

std::int64_t limit(Limit which) { return limits[static_cast<std::size_t>(which)].load(std::memory_order_relaxed); }

void set_limit(Limit which, std::int64_t value) {
  const auto i = static_cast<std::size_t>(which);
  limits[i].store(value ? value : kInfos[i].initial, std::memory_order_relaxed);
}

void fail_over(Limit which, std::size_t amount) {
  const LimitInfo &info = kInfos[static_cast<std::size_t>(which)];
  fail(QTN_ENOMEM, amount, " ", info.unit, " are over the limit ", info.name, " of ", limit(which));
}

Allowance::Allowance(Limit which, std::size_t held)
    : Allowance(which, held,
                limit(which) ? static_cast<std::size_t>(limit(which)) : std::numeric_limits<std::size_t>::max()) {}

Allowance::Allowance(Limit which, std::size_t held, std::size_t most)
    : which_(which), most_(most), scope_(last_scope.fetch_add(1, std::memory_order_relaxed) + 1), outer_(innermost) {
  add(held);
  innermost = this;
}

Allowance::~Allowance() { innermost = outer_; }

void Allowance::add(std::size_t bytes) {
  std::size_t sum;
  if (__builtin_add_overflow(held_, bytes, &sum) || sum > most_)
    fail(QTN_ENOMEM, bytes, " bytes beside ", held_, " are over the limit ",
         kInfos[static_cast<std::size_t>(which_)].name, " of ", most_);
  held_ = sum;
}

std::uint64_t Allowance::take(std::size_t bytes) {
  if (!innermost) return 0;
  innermost->add(bytes);
  return innermost->scope_;
}

void Allowance::give_back(std::uint64_t scope, std::size_t bytes) noexcept {
  if (innermost && innermost->scope_ == scope) innermost->held_ -= bytes;
}

}  // namespace qtn
