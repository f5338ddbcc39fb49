// SPDX-License-Identifier: Apache-2.0
// Times every layer with both engines and prints csv. The engines take turns of some milliseconds over many rounds, so
// that a slow moment of the machine hits both; a figure is the median over the rounds. The clock is the CPU time of
// the one thread, which does not run while another program has the core.
//
// usage: qtensor_layers [ROUNDS [WEIGHT_BITS [NAME...]]]      layers whose set and name, as printed, contain a NAME
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "base/parallel.hpp"
#include "layer.hpp"
#include "peak.hpp"

namespace qtn::layers {
namespace {

constexpr double kTurnSeconds = 2e-3;

double seconds_of(Engine &engine, int runs) {
  const double start = bench::thread_seconds();
  for (int i = 0; i < runs; ++i) engine.run();
  return (bench::thread_seconds() - start) / runs;
}

int runs_of_turn(Engine &engine) {
  engine.run();
  const double once = seconds_of(engine, 3);
  return std::max(1, static_cast<int>(kTurnSeconds / once));
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(part * static_cast<double>(values.size() - 1)))];
}

/// What part of the outputs differ; by more than one ends the program unless oneDNN may saturate.
double differing(const Layer &layer, const Engine &a, const Engine &b, bool saturating) {
  const std::vector<std::uint8_t> left = a.result(), right = b.result();
  if (left.size() != right.size())
    fail(QTN_EINTERNAL, layer.name(), ": ", left.size(), " outputs, oneDNN has ", right.size());
  std::size_t apart = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!saturating && std::abs(left[i] - right[i]) > 1)
      fail(QTN_EINTERNAL, layer.name(), ": output ", i, " is ", int{left[i]}, ", oneDNN's is ", int{right[i]});
    apart += left[i] != right[i];
  }
  return static_cast<double>(apart) / static_cast<double>(left.size());
}

void measure(const Layer &layer, int weight_bits, int rounds) {
  const Problem problem(layer, weight_bits);
  const std::array engines{make_ours(layer, problem), make_onednn(layer, problem)};
  const std::array runs{runs_of_turn(*engines[0]), runs_of_turn(*engines[1])};
  const bool saturating = weight_bits == 8 && (isa() == Isa::avx2 || isa() == Isa::avx512);
  const double apart = differing(layer, *engines[0], *engines[1], saturating);

  std::array<std::vector<double>, 2> seconds, of_peak;
  std::vector<double> peaks, ratios;
  for (int round = 0; round < rounds; ++round) {
    peaks.push_back(bench::peak_macs());
    std::array<double, 2> taken{};
    // Every other round goes the other way: neither engine always runs after the peak.
    for (const int turn : {0, 1}) {
      const auto e = static_cast<std::size_t>((turn + round) % 2);
      taken[e] = seconds_of(*engines[e], runs[e]);
      seconds[e].push_back(taken[e]);
      of_peak[e].push_back(static_cast<double>(layer.macs()) / taken[e] / peaks.back());
    }
    ratios.push_back(taken[1] / taken[0]);
  }
  const auto rate = [&](std::size_t e) { return static_cast<double>(layer.macs()) / quantile(seconds[e], 0.5) / 1e9; };
  std::printf("%s,%s,%lld,%s,%.2f,%.2f,%.1f,%.1f,%.1f,%.3f,%.3f,%.5f,%s,%s,%s,%.3f,%.3f,%.3f\n", layer.set,
              layer.name().c_str(), static_cast<long long>(layer.macs()), isa_name(isa()),
              quantile(seconds[0], 0.5) * 1e6, quantile(seconds[1], 0.5) * 1e6, rate(0), rate(1),
              quantile(peaks, 0.5) / 1e9, quantile(of_peak[0], 0.5), quantile(of_peak[1], 0.5), apart,
              engines[0]->kernel().c_str(), engines[1]->kernel().c_str(), onednn_version().c_str(),
              quantile(ratios, 0.1), quantile(ratios, 0.9), quantile(ratios, 0.5));
  std::fflush(stdout);
}

bool wanted(const Layer &layer, std::span<char *const> names) {
  const std::string full = std::string(layer.set) + " " + layer.name();
  return names.empty() || std::any_of(names.begin(), names.end(),
                                      [&](const char *name) { return full.find(name) != std::string::npos; });
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 41;
  if (rounds < 1) fail(QTN_EINVAL, "rounds is ", argv[1], ", not a positive number");
  const int weight_bits = argc > 2 ? std::atoi(argv[2]) : 7;
  if (weight_bits != 7 && weight_bits != 8) fail(QTN_EINVAL, "weight bits are ", argv[2], ", not 7 or 8");
  omp_set_num_threads(1);
  set_default_threads(1);
  std::printf(
      "set,layer,macs,isa,qtensor_us,onednn_us,qtensor_gmacs,onednn_gmacs,peak_gmacs,qtensor_of_peak,onednn_of_peak,"
      "differing,qtensor_kernel,onednn_kernel,peers,ratio_p10,ratio_p90,ratio\n");
  for (const Layer &layer : all_layers())
    if (wanted(layer, {argv + std::min(argc, 3), argv + argc})) measure(layer, weight_bits, rounds);
  return 0;
}

}  // namespace
}  // namespace qtn::layers

int main(int argc, char **argv) {
  try {
    return qtn::layers::main(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "qtensor_layers: %s\n", error.what());
    return 1;
  }
}
