// SPDX-License-Identifier: Apache-2.0
// A calibration that was stopped: what its observers hold, how many batches they have seen, and of which data.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "shared/handles.hpp"

namespace tool {

class Checkpoint {
 public:
  /// `data` says which samples are meant; a checkpoint of others is refused. `path` "": nothing is written.
  Checkpoint(std::string path, std::string data) : path_(std::move(path)), data_(std::move(data)) {}

  /// Adds what the file holds to the prepared model, and returns how many batches that has seen; 0 where there is no file.
  size_t resume(qmodel *prepared) const;

  /// Writes it where the last one is some seconds old, or `always`.
  void write(const qmodel *prepared, size_t done, bool always);

  /// When its work is done.
  void remove() const;

  const std::string &path() const { return path_; }
  /// What lives beside it for a moment; "" where nothing is written.
  std::string beside() const { return path_.empty() ? "" : path_ + ".calibration~"; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kInterval{2};

  std::string path_, data_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace tool
