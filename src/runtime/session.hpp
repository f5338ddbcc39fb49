// SPDX-License-Identifier: Apache-2.0
// A graph made ready to run: weights packed once, memory planned for each set of input shapes, steps bound to kernels.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::runtime {

enum class Engine {
  native,     ///< kernels of integers where values are quantized, of floats elsewhere
  reference,  ///< each node by its definition, one by one: checks the native engine
};

struct SessionOptions {
  Engine engine = Engine::native;
  int threads = 0;  ///< 0: the process default at each run
  /// Inputs on an 8-bit grid are given as its integers, and outputs on one are such, as single layers take them.
  bool integers = false;
};

class Session {
 public:
  Session(const graph::Graph &g, const SessionOptions &options);
  ~Session();

  /// Outputs in graph order, float32 unless the options say otherwise. Safe from many threads at once. Throws
  /// QTN_EINVAL, QTN_EDTYPE or QTN_ESHAPE on inputs that do not fit. Once runs of these shapes have made their plan and
  /// memory, a run on int8 kernels takes no lock and allocates nothing but its outputs, unless shapes depend on data.
  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs) const;
  std::vector<Tensor> run(std::span<const Tensor *const> inputs) const;

  /// The same, where nullptr stands for the state of an input. `deliver` gets the outputs; if it throws, the state stays
  /// what it was. With state, runs at the same time are QTN_ESTATE.
  using Deliver = std::function<void(std::span<Tensor>)>;
  void run(std::span<const Tensor *> inputs, std::span<Tensor> outputs, const Deliver &deliver) const;

  /// An output of each run is an input of the next one.
  void bind(std::size_t output, std::size_t input);
  void reset();
  bool holds_state(std::size_t input) const;

  /// One run with a clock around each step: JSON
  /// {"engine","isa","threads","weights_bytes","plan_bytes","nodes":[{"name","op","kernel","dtype","ms",
  /// "macs","bytes"}]}.
  std::string profile(std::span<const Tensor *const> inputs) const;

  const graph::Graph &graph() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qtn::runtime
