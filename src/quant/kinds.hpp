// SPDX-License-Identifier: Apache-2.0
// The kinds of observer: one constructor each, listed in observer.cpp.
#pragma once

#include <memory>
#include <vector>

#include "quant/bytes.hpp"
#include "quant/observer.hpp"

namespace qtn::quant {

std::unique_ptr<Observer> make_minmax(const ObserverSettings &settings);
std::unique_ptr<Observer> make_moving_average(const ObserverSettings &settings);
std::unique_ptr<Observer> make_mse(const ObserverSettings &settings);
std::unique_ptr<Observer> make_histogram(const ObserverSettings &settings);

/// Smallest and largest value of each channel; one channel under a per-tensor scheme.
struct Ranges {
  std::vector<float> mins, maxs;

  std::size_t size() const { return mins.size(); }
};

/// Of a contiguous tensor that is not empty.
Ranges measure(const Tensor &x, const ObserverSettings &settings);

/// Throws QTN_ESHAPE unless both have as many channels.
void check_channels(const Ranges &seen, const Ranges &now);

QuantizerPtr choose_from(const Ranges &ranges, const ObserverSettings &settings);

void write_ranges(ByteWriter &out, const Ranges &ranges);
Ranges read_ranges(ByteReader &in, const ObserverSettings &settings);

}  // namespace qtn::quant
