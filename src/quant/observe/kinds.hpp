// SPDX-License-Identifier: Apache-2.0
// The kinds of observer: one constructor each, listed in observer.cpp.
#pragma once

#include <memory>
#include <vector>

#include "kernels/real/real.hpp"
#include "quant/observe/bytes.hpp"
#include "quant/observe/observer.hpp"

namespace qtn::quant {

std::unique_ptr<Observer> make_minmax(const ObserverSettings &settings);
std::unique_ptr<Observer> make_max(const ObserverSettings &settings);
std::unique_ptr<Observer> make_fixed(const ObserverSettings &settings);
std::unique_ptr<Observer> make_moving_average(const ObserverSettings &settings);
std::unique_ptr<Observer> make_mse(const ObserverSettings &settings);
std::unique_ptr<Observer> make_histogram(const ObserverSettings &settings);
std::unique_ptr<Observer> make_percentile(const ObserverSettings &settings);
std::unique_ptr<Observer> make_entropy(const ObserverSettings &settings);
std::unique_ptr<Observer> make_nvidia_percentile(const ObserverSettings &settings);
std::unique_ptr<Observer> make_nvidia_entropy(const ObserverSettings &settings);
std::unique_ptr<Observer> make_nvidia_mse(const ObserverSettings &settings);

/// Smallest and largest value of each channel or block; one under a per-tensor scheme.
struct Ranges {
  std::vector<float> mins, maxs;

  std::size_t size() const { return mins.size(); }
};

/// The integers that values may become, before reduce_range and narrow_range.
IntegerRange integers(const ObserverSettings &settings);

/// The ends of one value or more, on all threads.
kernels::Extent extent_of(const float *data, std::size_t count);

/// The ranges of a contiguous tensor that is not empty.
Ranges measure(const Tensor &x, const ObserverSettings &settings);

/// Throws QTN_ESHAPE unless both have as many channels or blocks.
void check_channels(const Ranges &seen, const Ranges &now);

/// Extends the ranges seen by the current ones; throws as check_channels, unless nothing was seen.
void widen(Ranges &seen, const Ranges &now);

/// Exponential means: mean + weight (now - mean), as torch.ao's moving averages in float32, of floats of any size, and
/// ordered. Throws as check_channels.
void move_towards(Ranges &mean, const Ranges &now, float weight);

/// What NVIDIA's calibrators mean by an amax: [-amax, amax], or [0, amax] of values that were never negative.
void add_magnitude(Ranges &ranges, float amax, bool negative);

QuantizerPtr choose_from(const Ranges &ranges, const ObserverSettings &settings);

void write_ranges(ByteWriter &out, const Ranges &ranges);
Ranges read_ranges(ByteReader &in, const ObserverSettings &settings);

}  // namespace qtn::quant
