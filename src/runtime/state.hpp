// SPDX-License-Identifier: Apache-2.0
// What a session keeps from one run to the next: outputs that are inputs of the next run.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace qtn::runtime {

class State {
 public:
  /// For the graph that the session runs, which lives on.
  explicit State(const graph::Graph &g) : graph_(g) {}

  /// Throws QTN_EINVAL, QTN_EDTYPE or QTN_ESHAPE where the two do not exist or fit.
  void bind(std::size_t output, std::size_t input);
  void reset();

  bool empty() const { return entries_.empty(); }
  bool holds(std::size_t input) const;

  /// One run. A run in another thread at the same time is QTN_ESTATE.
  class Turn {
   public:
    explicit Turn(State &state);
    ~Turn();
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

    /// Puts the state in the places of inputs that are nullptr. Throws QTN_ESTATE where there is none.
    void fill(std::span<const Tensor *> inputs);
    /// Where bound outputs are to be written if they have such a type and shape, without data for all others.
    void offer(std::span<const Tensor *const> inputs, std::span<Tensor> places);
    /// Throws QTN_EDTYPE or QTN_ESHAPE unless bound outputs are what their inputs take.
    void check(std::span<const Tensor> outputs) const;
    /// The outputs of this run are the state from now on. Nothing fails here.
    void commit(std::span<const Tensor> outputs) noexcept;

   private:
    State &state_;
  };

 private:
  /// A tensor, and the owner of its memory where that is known to be the only one.
  struct Memory {
    Tensor tensor;
    std::shared_ptr<void> owner;

    bool is_free() const;
  };

  struct Entry {
    std::size_t output, input;
    Memory now, spare;        ///< the state, and memory that the next one may take
    Memory offered;           ///< during a run
    Tensor zeros;             ///< the first state, of a declared shape
    bool keeps_shape = true;  ///< no run has changed it yet
  };

  const graph::Value &output(const Entry &e) const { return graph_.value(graph_.outputs[e.output]); }
  const graph::Value &input(const Entry &e) const { return graph_.value(graph_.inputs[e.input]); }
  static Memory take_memory(qdtype dtype, const Shape &shape);
  const Tensor &first(Entry &e) const;
  void check_declared(const Entry &e) const;

  const graph::Graph &graph_;
  std::vector<Entry> entries_;
  std::atomic<bool> is_running_{false};
};

}  // namespace qtn::runtime
