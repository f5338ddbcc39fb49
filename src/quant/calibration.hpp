// SPDX-License-Identifier: Apache-2.0
// What calibration has gathered, apart from its model: saved, loaded and merged, so that samples can be spread over
// processes and machines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quant/prepare.hpp"

namespace qtn::quant {

struct Calibration {
  struct Entry {
    std::string tensor;  ///< the first member of its group
    std::unique_ptr<Observer> observer;
  };

  std::string source;           ///< where it comes from, for messages
  std::uint64_t model, config;  ///< fingerprints: of nodes and constants, and of what every node is configured to be
  std::string recipe;
  std::uint64_t samples;
  std::vector<Entry> entries;
};

/// A copy of what the observers hold.
Calibration calibration_of(const PreparedModel &prepared);

/// Merges another calibration into a prepared model, as if that had seen its samples too. Throws QTN_EINVAL where they
/// do not belong together, and changes nothing then.
void add(PreparedModel &prepared, const Calibration &more);

/// The same for two calibrations.
void add(Calibration &calibration, const Calibration &more);

void save_calibration(const Calibration &calibration, const std::string &path);

/// Throws QTN_EFORMAT on what save_calibration() did not write, QTN_EUNSUPPORTED where another version of it did.
Calibration load_calibration(const std::string &path);

}  // namespace qtn::quant
