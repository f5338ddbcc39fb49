// SPDX-License-Identifier: Apache-2.0
#include "quant/search/speed.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>

#include "quant/search/accuracy.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

double milliseconds_of_run(const runtime::Session &session, const std::vector<Tensor> &inputs) {
  const Clock::time_point begin = Clock::now();
  run(session, inputs);
  return milliseconds(Clock::now() - begin);
}

}  // namespace

std::vector<double> milliseconds_in_turns(std::span<const graph::Graph *const> models,
                                          const std::vector<Tensor> &inputs, const Progress &progress) {
  constexpr std::size_t kRounds = 5;
  constexpr double kEnough = 300;  // milliseconds of all models together
  std::deque<runtime::Session> sessions;
  for (const graph::Graph *model : models) {
    sessions.emplace_back(*model, runtime::SessionOptions());
    run(sessions.back(), inputs);  // makes the plan
  }
  std::vector<double> least(models.size(), std::numeric_limits<double>::infinity());
  double all = 0;
  for (std::size_t round = 0; round < kRounds || all < kEnough; ++round) {
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      const double ms = milliseconds_of_run(sessions[i], inputs);
      least[i] = std::min(least[i], ms);
      all += ms;
    }
    if (progress) progress("timing", std::min(round + 1, kRounds), kRounds);
  }
  return least;
}

std::size_t fastest(std::span<const double> milliseconds) {
  constexpr double kAsFast = 1.05;
  const double least = *std::min_element(milliseconds.begin(), milliseconds.end());
  const auto first =
      std::find_if(milliseconds.begin(), milliseconds.end(), [&](double ms) { return ms <= kAsFast * least; });
  return static_cast<std::size_t>(first - milliseconds.begin());
}

}  // namespace qtn::quant
