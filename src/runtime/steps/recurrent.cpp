// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN. What comes from x is one product for all steps; what comes from the state is one for each step, by
// weights that are packed once. Directions run side by side, and parts of a batch, whose sequences do not meet.
#include "runtime/steps/recurrent.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace qtn::runtime {
namespace {

using ops::activate;
using ops::GateActivation;

// The state of so many sequences stays in the second level of cache from step to step; fewer than these are not worth
// another thread, which reads the weights, too. And so many rows of x are a task.
constexpr std::size_t kNearSequences = 256, kFewestSequences = 8, kInputRows = 256;

/// One direction: the weights, and what a run of it works on.
struct Direction {
  RecurrentMatrix of_x, of_h;
  std::optional<RecurrentMatrix> of_reset;  ///< of the candidate of a GRU that resets the state before the product
};

void add(const float *x, float *y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += x[i];
}

class RecurrentStep final : public Step {
 public:
  RecurrentStep(const RecurrentLayer &layer, const ops::Recurrent &sizes, std::vector<Direction> directions)
      : layer_(layer),
        r_(sizes),
        directions_(std::move(directions)),
        rows_(batch() * static_cast<std::size_t>(r_.steps)) {
    kernel = directions_[0].of_h.kernel();
    integer = directions_[0].of_h.in_integers();
    if (!integer) float_mode = FloatMode::without_denormals;
    for (const SlotId s : {layer.x, layer.lengths, layer.h, layer.c})
      if (s != kNoSlot) reads.push_back(s);
    for (const SlotId s : {layer.work, layer.codes, layer.y, layer.last_h, layer.last_c})
      if (s != kNoSlot) writes.push_back(s);
    macs = static_cast<std::int64_t>(rows_ * directions_.size() * gates() * hidden()) * (r_.features + r_.hidden);
  }

  std::size_t lane_bytes() const override { return codes_bytes() + products_bytes(); }

  void run(const Context &c) const override {
    const ops::Lengths lengths = lengths_of(c);
    auto *work = c.tensor(layer_.work).as<float>();
    multiply_inputs(c, work);
    if (layer_.y != kNoSlot && lengths.differ()) std::memset(c.tensor(layer_.y).data(), 0, c.tensor(layer_.y).nbytes());
    const std::size_t ns = static_cast<std::size_t>(macs) / 30, parts = parts_of_batch(c),
                      sequences = ceil_div(batch(), parts);
    for_chunks(c, directions_.size() * parts, ns, [&](std::size_t lane, std::size_t chunk) {
      const std::size_t first = chunk % parts * sequences;
      if (first < batch())
        walk(c, {chunk / parts, first, std::min(batch(), first + sequences)}, lengths, work, c.lane_scratch(lane));
    });
    if (layer_.clamp && layer_.y != kNoSlot) ops::clamp_elements(c.tensor(layer_.y), *layer_.clamp);
  }

  static RecurrentSizes work_of(const ops::Recurrent &r) {
    const auto batch = static_cast<std::size_t>(r.batches), hidden = static_cast<std::size_t>(r.hidden),
               gates = static_cast<std::size_t>(r.gates), rows = static_cast<std::size_t>(r.steps) * batch;
    const std::size_t floats = (rows * gates * hidden + of_state(batch, hidden, gates)) * r.directions + rows;
    const std::size_t codes = 2 * rows * static_cast<std::size_t>(r.features);
    return {static_cast<std::int64_t>(floats), static_cast<std::int64_t>(codes)};
  }

 private:
  static std::size_t of_state(std::size_t batch, std::size_t hidden, std::size_t gates) {
    return batch * (hidden * (gates + 4) + 1);  // gates; h, c; the reset state and its product; a scale
  }

  std::size_t batch() const { return static_cast<std::size_t>(r_.batches); }
  std::size_t hidden() const { return static_cast<std::size_t>(r_.hidden); }
  std::size_t gates() const { return static_cast<std::size_t>(r_.gates); }
  std::size_t width() const { return gates() * hidden(); }

  ops::Lengths lengths_of(const Context &c) const {
    return {layer_.op, r_, layer_.lengths == kNoSlot ? nullptr : &c.tensor(layer_.lengths)};
  }

  float *products(float *work, std::size_t d) const { return work + d * rows_ * width(); }
  float *state(float *work, std::size_t d) const {
    return products(work, directions_.size()) + d * of_state(batch(), hidden(), gates());
  }

  /// Bytes of scratch for the integers of a part's states, and what is read behind them.
  std::size_t codes_bytes() const {
    if (!directions_[0].of_h.in_integers()) return 0;
    return round_up(2 * std::min(batch(), kNearSequences) * hidden() + kReadSlack, kAlignment);
  }
  std::size_t products_bytes() const {
    std::size_t most = 0;
    for (const Direction &d : directions_) {
      most = std::max({most, d.of_x.scratch_bytes(), d.of_h.scratch_bytes()});
      if (d.of_reset) most = std::max(most, d.of_reset->scratch_bytes());
    }
    return most;
  }

  std::uint8_t *codes(const Context &c) const {
    return layer_.codes == kNoSlot ? nullptr : c.tensor(layer_.codes).as<std::uint8_t>();
  }

  void multiply_inputs(const Context &c, float *work) const {
    const RecurrentRows x{c.tensor(layer_.x).as<const float>(), codes(c), state(work, directions_.size())};
    const auto features = static_cast<std::size_t>(r_.features);
    if (directions_[0].of_x.in_integers())
      for_ranges(c, rows_, rows_ * features, [&](std::size_t, std::size_t first, std::size_t last) {
        directions_[0].of_x.encode(x.from(first, features), last - first);
      });
    const std::size_t block = directions_[0].of_x.block(), blocks = ceil_div(width(), block),
                      tasks = ceil_div(rows_, kInputRows);
    const std::size_t ns = rows_ * width() * directions_.size() * features / 100;
    for_chunks(c, directions_.size() * blocks * tasks, ns, [&](std::size_t lane, std::size_t chunk) {
      const std::size_t d = chunk / tasks / blocks, first = chunk / tasks % blocks * block,
                        row = chunk % tasks * kInputRows;
      directions_[d].of_x.multiply(x.from(row, features), std::min(kInputRows, rows_ - row), first,
                                   std::min(block, width() - first), products(work, d) + row * width(), width(),
                                   c.lane_scratch(lane));
    });
  }

  /// How many parts of the batch run by themselves.
  std::size_t parts_of_batch(const Context &c) const {
    const std::size_t lanes = ceil_div(c.lanes, directions_.size());
    return std::max(
        {std::size_t{1}, ceil_div(batch(), kNearSequences), std::min(lanes, ceil_div(batch(), kFewestSequences))});
  }

  /// Sequences [first, end) of the batch in one direction.
  struct Part {
    std::size_t d, first, end;
  };

  void walk(const Context &c, const Part &part, const ops::Lengths &lengths, float *work, std::byte *scratch) const {
    const std::size_t d = part.d, sequences = part.end - part.first;
    const Direction &direction = directions_[d];
    const float *of_x = products(work, d);
    const std::size_t size = batch() * hidden();
    float *h = state(work, d), *cells = h + size, *of_gates = cells + size, *reset = of_gates + size * gates(),
          *candidate = reset + size, *scales = candidate + size;
    const bool integers = direction.of_h.in_integers();
    // Kernels read behind rows, where nothing may be that another part writes.
    auto *halves = reinterpret_cast<std::uint8_t *>(scratch + products_bytes());
    const auto multiply = [&](const RecurrentMatrix &matrix, const float *rows, float *to) {
      const RecurrentRows encoded{rows + part.first * hidden(), integers ? halves : nullptr, scales + part.first};
      if (integers) matrix.encode(encoded, sequences);
      matrix.multiply(encoded, sequences, to + part.first * matrix.columns(), scratch);
    };
    begin(c, layer_.h, part, h);
    begin(c, layer_.c, part, cells);
    float *y = layer_.y == kNoSlot ? nullptr : c.tensor(layer_.y).as<float>();
    for (std::int64_t k = 0; k < r_.steps; ++k) {
      multiply(direction.of_h, h, of_gates);
      const auto for_batches = [&](auto &&body) {
        for (std::size_t at = part.first; at < part.end; ++at) {
          const auto b = static_cast<std::int64_t>(at);
          const std::int64_t length = lengths[b];
          if (k >= length) continue;
          const std::int64_t t = r_.step(d, k, length), row = r_.row(b, t);
          body(at, of_x + static_cast<std::size_t>(row) * width(), of_gates + at * direction.of_h.columns(), t);
        }
      };
      if (direction.of_reset) {
        for_batches([&](std::size_t b, const float *from_x, float *g, std::int64_t) {
          open_gates(d, from_x, g);
          for (std::size_t i = 0; i < hidden(); ++i) reset[b * hidden() + i] = g[hidden() + i] * h[b * hidden() + i];
        });
        multiply(*direction.of_reset, reset, candidate);
      }
      for_batches([&](std::size_t b, const float *from_x, float *g, std::int64_t t) {
        float *state = h + b * hidden();
        if (layer_.kind == RecurrentLayer::lstm)
          lstm(d, from_x, g, state, cells + b * hidden());
        else if (layer_.kind == RecurrentLayer::rnn)
          rnn(d, from_x, g, state);
        else if (direction.of_reset)
          close_gru(d, from_x, g, candidate + b * hidden(), state);
        else
          linear_gru(d, from_x, g, state);
        if (y) std::memcpy(y + r_.y_at(d, static_cast<std::int64_t>(b), t), state, hidden() * sizeof(float));
      });
    }
    end(c, layer_.last_h, part, h);
    end(c, layer_.last_c, part, cells);
  }

  /// Update and reset of a GRU, which are the first two.
  void open_gates(std::size_t d, const float *of_x, float *g) const {
    add(of_x, g, 2 * hidden());
    activate(r_.activation(d, 0), r_.clip, g, 2 * r_.hidden);
  }

  void close_gru(std::size_t d, const float *of_x, const float *g, float *next, float *state) const {
    add(of_x + 2 * hidden(), next, hidden());
    activate(r_.activation(d, 1), r_.clip, next, r_.hidden);
    for (std::size_t i = 0; i < hidden(); ++i) state[i] = (1 - g[i]) * next[i] + g[i] * state[i];
  }

  /// The reset is applied to what comes from the state, the bias of the recurrence included.
  void linear_gru(std::size_t d, const float *of_x, float *g, float *state) const {
    open_gates(d, of_x, g);
    float *next = g + 2 * hidden();
    for (std::size_t i = 0; i < hidden(); ++i) next[i] *= g[hidden() + i];
    close_gru(d, of_x, g, next, state);
  }

  void rnn(std::size_t d, const float *of_x, float *g, float *state) const {
    add(of_x, g, hidden());
    activate(r_.activation(d, 0), r_.clip, g, r_.hidden);
    std::memcpy(state, g, hidden() * sizeof(float));
  }

  void lstm(std::size_t d, const float *of_x, float *g, float *state, float *cell) const {
    const std::size_t n = hidden();
    float *input = g, *output = g + n, *forget = g + 2 * n, *next = g + 3 * n;
    const GateActivation &f = r_.activation(d, 0);
    const float *peep = layer_.peepholes.has_data() ? layer_.peepholes.as<const float>() + d * 3 * n : nullptr;
    add(of_x, g, 4 * n);
    for (std::size_t i = 0; peep && i < n; ++i) {
      input[i] += peep[i] * cell[i];
      forget[i] += peep[2 * n + i] * cell[i];
    }
    if (peep) {
      activate(f, r_.clip, input, r_.hidden);
      activate(f, r_.clip, forget, r_.hidden);
    } else {
      activate(f, r_.clip, g, 3 * r_.hidden);
    }
    activate(r_.activation(d, 1), r_.clip, next, r_.hidden);
    if (layer_.coupled)
      for (std::size_t i = 0; i < n; ++i) forget[i] = 1 - input[i];
    for (std::size_t i = 0; i < n; ++i) cell[i] = forget[i] * cell[i] + input[i] * next[i];
    for (std::size_t i = 0; peep && i < n; ++i) output[i] += peep[n + i] * cell[i];
    if (peep) activate(f, r_.clip, output, r_.hidden);
    std::memcpy(state, cell, n * sizeof(float));
    activate(r_.activation(d, 2), std::numeric_limits<double>::infinity(), state, r_.hidden);
    for (std::size_t i = 0; i < n; ++i) state[i] *= output[i];
  }

  void begin(const Context &c, SlotId given, const Part &part, float *to) const {
    for (std::size_t b = part.first; b < part.end; ++b)
      if (given == kNoSlot)
        std::memset(to + b * hidden(), 0, hidden() * sizeof(float));
      else
        std::memcpy(to + b * hidden(),
                    c.tensor(given).as<const float>() + r_.state_at(part.d, static_cast<std::int64_t>(b)),
                    hidden() * sizeof(float));
  }
  void end(const Context &c, SlotId wanted, const Part &part, const float *from) const {
    for (std::size_t b = part.first; wanted != kNoSlot && b < part.end; ++b)
      std::memcpy(c.tensor(wanted).as<float>() + r_.state_at(part.d, static_cast<std::int64_t>(b)), from + b * hidden(),
                  hidden() * sizeof(float));
  }

  RecurrentLayer layer_;
  ops::Recurrent r_;
  std::vector<Direction> directions_;
  std::size_t rows_;  ///< of x
};

}  // namespace

RecurrentSizes recurrent_work(const ops::Recurrent &sizes) { return RecurrentStep::work_of(sizes); }

StepPtr make_recurrent(const RecurrentLayer &layer, const ops::Recurrent &sizes, Isa isa,
                       const std::function<PackCache(std::size_t part, std::size_t parts)> &cache) {
  const auto hidden = static_cast<std::size_t>(sizes.hidden), gates = static_cast<std::size_t>(sizes.gates),
             width = gates * hidden;
  const bool is_gru = layer.kind == RecurrentLayer::gru;
  // Where both biases meet in one sum, they are added to what comes from x.
  const std::size_t joint = is_gru && layer.linear_before_reset ? 2 : gates;
  const std::size_t at_once = is_gru && !layer.linear_before_reset ? 2 : gates;
  const std::size_t parts = 3 * sizes.directions;
  std::vector<Direction> directions;
  for (std::size_t d = 0; d < sizes.directions; ++d) {
    const float *b = layer.b.has_data() ? layer.b.as<const float>() + d * 2 * width : nullptr;
    std::vector<float> of_x(width, 0.0f), of_h(at_once * hidden, 0.0f);
    for (std::size_t i = 0; b && i < width; ++i) of_x[i] = i < joint * hidden ? b[i] + b[width + i] : b[i];
    for (std::size_t i = joint * hidden; b && i < at_once * hidden; ++i) of_h[i] = b[width + i];
    Direction made{{layer.w, d, 0, width, of_x, isa, cache(3 * d, parts)},
                   {layer.r, d, 0, at_once * hidden, of_h, isa, cache(3 * d + 1, parts)},
                   std::nullopt};
    if (at_once < gates)
      made.of_reset.emplace(layer.r, d, at_once * hidden, hidden, std::vector<float>(hidden, 0.0f), isa,
                            cache(3 * d + 2, parts));
    directions.push_back(std::move(made));
  }
  return std::make_unique<RecurrentStep>(layer, sizes, std::move(directions));
}

}  // namespace qtn::runtime
