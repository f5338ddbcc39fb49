// SPDX-License-Identifier: Apache-2.0
// Plans with memory to run them, between two runs. Taking one and giving it back never waits and never allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "runtime/plan_cache.hpp"

namespace qtn::runtime {

struct PreparedRun {
  std::uint64_t key;  ///< equal for inputs of equal types
  std::shared_ptr<const PlanEntry> entry;
  std::unique_ptr<Context> context;
};
using PreparedRunPtr = std::unique_ptr<PreparedRun>;

class RunPool {
 public:
  ~RunPool() {
    for (Place &place : places_) remove(place);
  }

  /// One that `fits`, or nullptr.
  template <class Fits>
  PreparedRunPtr take(std::uint64_t key, Fits &&fits) {
    // Runs of another key are left where their own threads look for them, unless there is nothing else.
    for (const bool any : {false, true})
      for (std::size_t i = 0, at = home(); i < kPlaces; ++i, at = (at + 1) % kPlaces) {
        if (!any && places_[at].key.load(std::memory_order_relaxed) != key) continue;
        PreparedRunPtr run = remove(places_[at]);
        if (run && run->key == key && fits(*run)) return run;
        put_back(places_[at], std::move(run));
      }
    return nullptr;
  }

  /// This thread looks for it first at its own place; what was there moves. Where all places are taken, it is freed.
  void give_back(PreparedRunPtr run) {
    std::size_t at = home();
    for (std::size_t i = 0; run && i < kPlaces; ++i, at = (at + 1) % kPlaces)
      run = exchange(places_[at], std::move(run));
  }

  /// Frees those that are `stale`.
  template <class Stale>
  void drop(Stale &&stale) {
    for (Place &place : places_)
      if (PreparedRunPtr run = remove(place); run && !stale(*run)) put_back(place, std::move(run));
  }

 private:
  // More runs than this at once allocate their memory again.
  static constexpr std::size_t kPlaces = 64;

  struct Place {
    std::atomic<std::uint64_t> key{0};  ///< a hint: another thread may have changed the run since
    std::atomic<PreparedRun *> run{nullptr};
  };

  static std::size_t home() { return std::hash<std::thread::id>()(std::this_thread::get_id()) % kPlaces; }

  /// Where it was, so that a look at all runs takes time in proportion to their number.
  void put_back(Place &place, PreparedRunPtr run) {
    if (run) give_back(exchange(place, std::move(run)));
  }
  static PreparedRunPtr exchange(Place &place, PreparedRunPtr run) {
    place.key.store(run->key, std::memory_order_relaxed);
    return PreparedRunPtr(place.run.exchange(run.release(), std::memory_order_acq_rel));
  }
  static PreparedRunPtr remove(Place &place) {
    if (!place.run.load(std::memory_order_relaxed)) return nullptr;
    return PreparedRunPtr(place.run.exchange(nullptr, std::memory_order_acquire));
  }

  std::array<Place, kPlaces> places_;
};

}  // namespace qtn::runtime
